"""Writes a study as a folder of scripts and Compose files that a user can run without Weighbridge."""

from weighbridge.cli.feature import Feature

FEATURE = Feature(commands={"kit": "weighbridge.features.kit.options:KIT"}, after="export")
