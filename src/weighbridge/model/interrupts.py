"""Whom a kernel charges for the time of interrupts."""

from typing import Literal

FACT = "interrupt time"
"""The fact of a host whose value is an `InterruptTime`."""

InterruptTime = Literal["accounted apart", "charged to the interrupted task", "unknown"]
"""What becomes of it. Control groups, and so the sites' own CPU time, hold it only where it is charged to a task.

No enum: what an ssh host runs must do with Python 3.9.
"""
