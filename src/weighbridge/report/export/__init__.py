"""Exports an analysis for other programs, as JSON and CSV."""
