"""Several runs with every environment called what people are to read, as `displayed` does it of one."""

from dataclasses import replace

from weighbridge.analysis.between_runs import RunPair, RunsCompared
from weighbridge.analysis.compared_run import ComparedRun
from weighbridge.analysis.history import History
from weighbridge.report.text.environments import displayed, environment_name, renamed


def displayed_runs(found: RunsCompared) -> RunsCompared:
    """Return the same comparison, not for machines; an environment in other hypervisors has both in its name."""
    names: dict[str, str] = {}
    by_name: dict[str, dict[str, None]] = {}
    for run in found.runs:
        for name, each in run.analysis.isolation.items():
            by_name.setdefault(name, {})[environment_name("", each)] = None
    for name, ways in by_name.items():
        names[name] = " then ".join((f"{name} {next(iter(ways))}", *list(ways)[1:]))
    if not names:
        return found
    return RunsCompared(_run(found.first), tuple(_pair(pair, names) for pair in found.pairs))


def displayed_history(found: History) -> History:
    """Return the same history, not for machines."""
    return replace(found, runs=tuple(replace(past, run=_run(past.run)) for past in found.runs))


def _run(run: ComparedRun) -> ComparedRun:
    return replace(run, analysis=displayed(run.analysis))


def _pair(pair: RunPair, names: dict[str, str]) -> RunPair:
    return replace(
        pair, first=_run(pair.first), second=_run(pair.second), facts=renamed(pair.facts, names),
        metrics=renamed(pair.metrics, names),
    )  # fmt: skip
