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


def resource_id(analysis: Analysis, label: str, number: int) -> str:
    """Return the id of a metric of resource use of a workload and level, by its number among them."""
    return f"{workload_id(analysis, label)}r{number}"


def comparison_id(analysis: Analysis, metric: str, environment: str) -> str:
    """Return the id of one environment's comparison on a metric, by the metric's id."""
    return f"{metric}e{analysis.environments.index(environment)}"


def levels_id(workload: str) -> str:
    """Return the id of the table of a workload's levels."""
    return f"levels-{workload}"


def ladder_id(number: int) -> str:
    """Return the id of a ladder's steps on one metric, by its number."""
    return f"ladder{number}"


def load_id(number: int) -> str:
    """Return the id of the curves of a rising load, by the sweep's number."""
    return f"load{number}"
