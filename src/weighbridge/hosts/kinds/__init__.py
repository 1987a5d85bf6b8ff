"""Kinds of hosts: one per module, each with an object PLUGIN."""
