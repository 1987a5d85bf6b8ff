"""The machines that environments run on: this machine, simulated hosts, guests, ssh hosts and cluster nodes."""
