"""Collects facts about machines and environments, such as kernel settings, limits and versions.

Reports use these facts to name confounders and to describe the conditions of a run.
"""
