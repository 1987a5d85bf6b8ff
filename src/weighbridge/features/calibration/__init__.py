"""Injects known costs into this machine and measures them, to check its accuracy."""

from weighbridge.cli.feature import Feature

FEATURE = Feature(
    commands={"calibrate": "weighbridge.features.calibration.options:CALIBRATE"},
    after="userland",
    documents={"calibrate": "weighbridge.features.calibration.analysis:CalibrationDocument"},
)
