"""What a published study states of how it was run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter as printed: its value and unit are text; no unit is empty."""

    parameter: str
    value: str
    unit: str = ""
