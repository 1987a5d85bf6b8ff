"""Studies: read from YAML, checked, and turned into a schedule of trials."""
