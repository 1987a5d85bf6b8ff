"""The mechanisms of isolation that `--explain` can switch off, such as seccomp and NAT, in one table."""
