"""Readers for the output of programs that measure themselves, with one output format per module.

The workload `command` uses them to turn a program's own output into metrics.
"""
