"""Cuts the power of guests that write records, and checks which acknowledged records survive."""

from weighbridge.cli.feature import Feature

FEATURE = Feature(
    commands={"durability": "weighbridge.features.durability.options:DURABILITY"},
    after="calibrate",
    documents={"durability": "weighbridge.features.durability.command:DurabilityDocument"},
)
