"""Reads a study from YAML, checks it, and turns it into a schedule of trials."""
