"""The sessions of a run, one for each start or continuation, and the differences between them.

A session is identified by its facts of this machine, which it records before it opens anything. A trial belongs to
the last session that started before it. This is decided by the ids of trials, and in older runs without them by the
clock.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from weighbridge.analysis.conditions import COMPARED, COMPARED_BEGINNINGS, Fact
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import grouped
from weighbridge.model.isolation import OUTSIDE

HOST = "host"
"""The scope of facts about this machine."""


@dataclass(frozen=True, slots=True)
class RunSession:
    """One session with trials: its start in seconds since the epoch, and the blocks of its trials."""

    started_at: float
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SessionDifference:
    """A fact that differs between sessions.

    ``environments`` have the fact at their sites; empty if it is about this machine. ``values`` are in the order of
    the sessions, "" if a session does not have the fact.
    """

    fact: str
    values: tuple[str, ...]
    environments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sessions:
    """All sessions of a run with trials, in order."""

    sessions: tuple[RunSession, ...] = ()
    mixed: tuple[int, ...] = ()
    """Blocks with good trials from several sessions that are compared with each other."""
    differences: tuple[SessionDifference, ...] = ()


def sessions(
    facts: Iterable[Fact],
    trials: Sequence[TrialRow],
    kinds: Collection[str],
    last_trials: Mapping[float, int] = MappingProxyType({}),
) -> Sessions:
    """Return the sessions of a run. ``kinds`` are kinds of environments, which are also names of version facts.

    ``facts`` are in chronological order; ``last_trials`` comes from `RunReader.session_starts`.
    """
    facts = list(facts)
    starts = list(dict.fromkeys(at for scope, _, _, at in facts if scope == HOST))
    number = {trial.id: _session_of(trial, starts, last_trials) for trial in trials}
    used = sorted(set(number.values()))
    if not starts or not used:
        return Sessions()
    used_sessions = tuple(
        RunSession(starts[each], tuple(sorted({trial.block for trial in trials if number[trial.id] == each})))
        for each in used
    )
    together = grouped((each for each in trials if each.ok), lambda trial: (trial.block, trial.attempt, trial.cell))
    mixed = {block for (block, *_), arms in together.items() if len({number[trial.id] for trial in arms}) > 1}
    return Sessions(used_sessions, tuple(sorted(mixed)), _differences(facts, starts, used, {*COMPARED, *kinds}))


def _session_of(trial: TrialRow, starts: Sequence[float], last_trials: Mapping[float, int]) -> int:
    """Return the last session that started before a trial."""
    for number in range(len(starts) - 1, 0, -1):
        last = last_trials.get(starts[number])
        if trial.started_at >= starts[number] if last is None else trial.id > last:
            return number
    return 0


def _differences(
    facts: Sequence[Fact], starts: Sequence[float], used: Sequence[int], compared: Collection[str]
) -> tuple[SessionDifference, ...]:
    """Return the facts that differ between sessions; environments with equal differences are grouped."""
    by_fact: dict[tuple[str, str], dict[int, str]] = {}
    number = 0
    for scope, key, value, at in facts:
        name, _, role = scope.partition("/")
        number = starts.index(at) if scope == HOST else number
        of_site = bool(role) and name != OUTSIDE and (key in compared or key.startswith(COMPARED_BEGINNINGS))
        if scope == HOST or of_site:
            by_fact.setdefault((name, key), {})[number] = value
    alike: dict[SessionDifference, list[str]] = {}
    for (name, key), by_session in by_fact.items():
        values = tuple(by_session.get(each, "") for each in used)
        if len({value for value in values if value}) > 1:
            alike.setdefault(SessionDifference(key, values), []).extend([] if name == HOST else [name])
    return tuple(
        SessionDifference(each.fact, each.values, tuple(dict.fromkeys(names))) for each, names in alike.items()
    )
