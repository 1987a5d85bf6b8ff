"""Reads and writes a run directory: one SQLite database, with the raw output of the programs next to it."""
