"""Times for programs whose command line takes whole seconds only."""

from typing import Annotated

from pydantic import AfterValidator

from weighbridge.model.quantity import Duration


def _whole_seconds(seconds: float) -> float:
    if not seconds.is_integer():
        raise ValueError(f"must be a whole number of seconds, not {seconds:g}s")
    return seconds


WholeSeconds = Annotated[Duration, AfterValidator(_whole_seconds)]
"""A time in seconds, written with a unit; ValueError where it is not a whole number of seconds."""
