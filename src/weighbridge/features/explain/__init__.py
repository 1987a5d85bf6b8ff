"""Explains the cost of a run: the mechanisms that can be switched off, and the study that switches them."""

from weighbridge.cli.feature import Feature
from weighbridge.features.explain.options import EXPLAIN

FEATURE = Feature(commands=(EXPLAIN,))
