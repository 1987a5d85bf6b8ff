"""Workloads: one measured program per module, each with an object PLUGIN. Pure: commands and parsers."""
