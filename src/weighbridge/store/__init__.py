"""A run directory: one SQLite file and the raw outputs beside it."""
