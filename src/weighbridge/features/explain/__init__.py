"""Explains the cost of a run: the mechanisms that can be switched off, and the study that switches them."""

from weighbridge.cli.feature import Feature

FEATURE = Feature(commands={"explain": "weighbridge.features.explain.options:EXPLAIN"}, after="report")
