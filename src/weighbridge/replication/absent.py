"""Why a run does not measure an environment of a published study."""

from weighbridge.analysis.results import Analysis
from weighbridge.replication.published import Published


def why_impossible(study: Published, analysis: Analysis, environment: str) -> str:
    """Why no profile measures an environment here: there is none of its kind, or it could not be opened; else ""."""
    if environment in study.no_environment:
        return f"{environment}: {study.no_environment[environment]}"
    left_out = next((each for each in analysis.left_out if each.environment == environment), None)
    return f"{environment} was left out, as it could not be opened: {left_out.reason}" if left_out else ""


def why_not_measured(study: Published, analysis: Analysis, environment: str) -> str:
    """Why a run does not measure an environment; empty where it does."""
    impossible = why_impossible(study, analysis, environment)
    return impossible or ("" if environment in analysis.environments else f"{environment} is not in this run")
