"""Adapters: the output formats of programs that measure by themselves, one file each, found by the registry."""
