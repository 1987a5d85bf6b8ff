"""Computes everything that a report shows: costs, verdicts, remarks, load curves and resource use.

It reads a run from `store` and passes plain data to `report` and `cli`.
"""
