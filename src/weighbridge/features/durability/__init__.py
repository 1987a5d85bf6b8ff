"""Cuts the power of guests that write records, and checks which acknowledged records survive."""

from weighbridge.cli.feature import Feature
from weighbridge.features.durability.options import DURABILITY

FEATURE = Feature(commands=(DURABILITY,))
