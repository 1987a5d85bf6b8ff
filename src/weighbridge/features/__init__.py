"""Products on top of the core, each in one folder that can be removed: `weighbridge.cli.feature` finds them."""
