"""Why a run does not measure an environment of a published study, and what measures it."""

from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.analysis.results import Analysis
from weighbridge.replication.proof import PublishedRow
from weighbridge.replication.published import Compared, Published


@dataclass(frozen=True, slots=True)
class Offer:
    """What one of the study's profiles measures."""

    profile: str
    workloads: frozenset[str]
    environments: frozenset[str]


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


def offered(compared: Compared, row: PublishedRow, offers: Sequence[Offer], *, absent: bool) -> str:
    """Which profile measures it, the one with the fewest workloads; empty where none does, or this run meant to."""
    fitting = [
        each
        for each in offers
        if absent and compared.measured.workload in each.workloads and row.environment in each.environments
    ]
    if not fitting:
        return ""
    return f": --profile {min(fitting, key=lambda each: len(each.workloads)).profile} measures it"
