"""A run for machines: JSON and CSV."""
