"""The ids in the page to which its parts link."""

from weighbridge.analysis.results import Analysis


def group(analysis: Analysis, label: str, environment: str) -> str:
    """Give the id of the trials of one environment in one workload and level."""
    return f"g{analysis.labels.index(label)}-{analysis.environments.index(environment)}"
