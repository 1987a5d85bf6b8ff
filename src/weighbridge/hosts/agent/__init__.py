"""What runs on a host that is reached by ssh: sent there, kept in memory, of the standard library only."""
