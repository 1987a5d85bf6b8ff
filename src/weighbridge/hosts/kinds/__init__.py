"""The kinds of hosts that a study can name, with one kind per module.

Each module has an object PLUGIN, which the registry finds.
"""
