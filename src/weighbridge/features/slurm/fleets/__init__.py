"""The provider of machines for fleets that asks Slurm for nodes."""
