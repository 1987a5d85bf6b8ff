"""Nodes of a Slurm job: as hosts of a study, and as machines of a fleet."""
