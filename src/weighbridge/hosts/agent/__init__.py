"""The agent that runs on an ssh host, a guest or a Slurm node and carries out what Weighbridge sends it.

Weighbridge sends it there for each run. It is kept in memory and uses only the standard library.
"""
