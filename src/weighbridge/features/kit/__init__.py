"""Writes a study as a folder to run by hand, without Weighbridge, or a run as a folder to repeat it."""

from weighbridge.cli.feature import Feature

FEATURE = Feature(commands={"kit": "weighbridge.features.kit.options:KIT"}, after="export")
