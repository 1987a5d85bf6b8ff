"""Fleets: rounds, folders, drivers."""
