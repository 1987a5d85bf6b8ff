"""How the published studies were run, as their sources state it."""

import csv
from importlib import resources

from weighbridge.model.study import Parameter


def parameters_of(study: str) -> tuple[Parameter, ...]:
    """The parameters of a published study in the order of its source; empty for any other study."""
    text = (resources.files("weighbridge.replication") / "parameters.csv").read_text()
    rows = csv.DictReader(text.splitlines())
    return tuple(Parameter(row["parameter"], row["value"], row["unit"]) for row in rows if row["study"] == study)
