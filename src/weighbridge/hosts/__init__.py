"""The machines that environments run on: this machine, simulated hosts, guests and ssh hosts."""
