"""Times for programs whose command line accepts only whole seconds."""

from typing import Annotated

from pydantic import AfterValidator

from weighbridge.model.quantity import Duration


def _whole_seconds(seconds: float) -> float:
    if not seconds.is_integer():
        raise ValueError(f"must be a whole number of seconds, not {seconds:g}s")
    return seconds


WholeSeconds = Annotated[Duration, AfterValidator(_whole_seconds)]
"""A whole number of seconds, written with a unit."""
