"""This machine's kernel: starting processes, control groups, and its files as numbers."""
