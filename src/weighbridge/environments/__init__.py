"""Environments: one isolation layer per module, each with an object PLUGIN."""
