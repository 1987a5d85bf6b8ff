"""The state of a running run, for monitoring from outside."""
