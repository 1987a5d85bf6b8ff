"""Runs one study on many machines at once, in waves, and keeps each run in its own directory."""

from weighbridge.cli.feature import Feature

FEATURE = Feature(
    commands={"fleet": "weighbridge.features.fleets.options:FLEET"},
    documents={
        "fleet": "weighbridge.features.fleets.json_document:FleetDocument",
        "fleet-status": "weighbridge.features.fleets.run_commands:FleetStatusDocument",
        "fleet-plan": "weighbridge.features.fleets.plan_document:FleetPlanDocument",
    },
)
