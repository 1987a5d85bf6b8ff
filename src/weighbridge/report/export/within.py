"""The hypervisors of environments, for machines."""

from weighbridge.analysis.conditions import NO_HYPERVISOR
from weighbridge.analysis.results import Analysis
from weighbridge.report.export.document import LayerRow, Within


def within_json(analysis: Analysis, environment: str) -> Within:
    """Give ``layers`` and ``emulated`` of an environment; of a run of an older version none are known."""
    hypervisors = analysis.isolation.get(environment, NO_HYPERVISOR)
    layers: list[LayerRow] = [{"name": layer.name, "emulated": layer.emulated} for layer in hypervisors.layers]
    return {"layers": layers, "emulated": hypervisors.emulated}
