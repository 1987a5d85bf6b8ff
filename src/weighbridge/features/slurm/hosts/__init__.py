"""The kind of host that is a node of a Slurm job."""
