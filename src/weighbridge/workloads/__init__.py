"""The workloads that a study can measure, with one program per module: its commands and a parser for its output.

Each module has an object PLUGIN, which the registry finds. Nothing here starts a program.
"""
