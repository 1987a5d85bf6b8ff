"""With how few blocks a report shows the measured values and no costs."""

FEW_BLOCKS = 5
"""Blocks below which a report shows the measured values, and neither costs nor noise floors."""

TOO_FEW = "too few to say"
"""What is said instead."""
