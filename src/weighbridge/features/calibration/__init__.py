"""Injects known costs into this machine and measures them, to check its accuracy."""

from weighbridge.cli.feature import Feature
from weighbridge.features.calibration.options import CALIBRATE

FEATURE = Feature(commands=(CALIBRATE,))
