"""The ids in the page of a run to which its parts link."""

from weighbridge.analysis.results import Analysis


def trials_id(analysis: Analysis, label: str, environment: str) -> str:
    """Return the id of the trials of one environment in one workload and level."""
    return f"g{analysis.labels.index(label)}-{analysis.environments.index(environment)}"


def workload_id(analysis: Analysis, label: str) -> str:
    """Return the id of a workload and level."""
    return f"w{analysis.labels.index(label)}"


def metric_id(analysis: Analysis, label: str, number: int = 0) -> str:
    """Return the id of a metric of a workload and level: the headline is number 0."""
    return f"{workload_id(analysis, label)}m{number}"


def levels_id(workload: str) -> str:
    """Return the id of the table of a workload's levels."""
    return f"levels-{workload}"


def load_id(number: int) -> str:
    """Return the id of the curves of a rising load, by the sweep's number."""
    return f"load{number}"
