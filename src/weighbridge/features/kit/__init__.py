"""Writes a study as a folder of scripts and Compose files that a user can run without Weighbridge."""

from weighbridge.cli.feature import Feature
from weighbridge.features.kit.options import KIT

FEATURE = Feature(commands=(KIT,))
