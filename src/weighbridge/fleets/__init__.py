"""Runs one study on many machines at once, in waves, and keeps each run in its own directory."""
