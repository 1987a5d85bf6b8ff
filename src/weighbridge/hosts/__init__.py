"""The machines that environments run on: this machine, simulated hosts and ssh hosts."""
