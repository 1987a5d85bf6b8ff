"""The providers of a fleet's machines (ssh hosts, Slurm, Kubernetes), with one provider per module."""
