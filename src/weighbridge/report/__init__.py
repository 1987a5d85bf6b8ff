"""A run as analysis, text, page, charts, JSON and CSV. Reads the store and the statistics, nothing else."""
