"""The fact of a host that shows how its kernel accounts the time of interrupts."""

from typing import Literal

INTERRUPT_TIME = "interrupt time"
"""The fact of a host whose value is an `InterruptTime`."""
InterruptTime = Literal["accounted apart", "charged to the interrupted task", "unknown"]
"""How the kernel accounts the time of interrupts. A site's CPU time includes it only if it is charged to a task.

This is not an enum, because the agent of an ssh host must work with Python 3.9.
"""
