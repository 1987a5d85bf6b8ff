"""Runs one study on many machines at once, in waves, and keeps each run in its own directory."""

from weighbridge.cli.feature import Feature
from weighbridge.features.fleets.options import FLEET

FEATURE = Feature(
    groups=(FLEET,),
    documents={
        "fleet": "weighbridge.features.fleets.json_document:FleetDocument",
        "fleet-status": "weighbridge.features.fleets.run_commands:FleetStatusDocument",
    },
)
