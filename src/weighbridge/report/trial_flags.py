"""What trials were flagged with, in words: once for all environments where it is about nearly all of them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from weighbridge.report.content import Remark, TrialRow
from weighbridge.report.numbers import plain

FOREIGN = 0.75
"""CPUs that may be busy outside of the sites: as `weighbridge.meters.host` has it, which a test compares."""

WORDS = {
    "load": "the machine's load was {range} when they began (flagged above 2 for each CPU)",
    "work outside the sites": "other programs, the engine and the kernel kept {cpus} CPUs busy beside what is"
    f" measured (flagged above {FOREIGN:g})",
    "steal": "the hypervisor took {range} % of the CPU time (steal; flagged above 1 %)",
    "memory pressure": "programs waited for memory in {range} % of the time (flagged above 5 %)",
    "io pressure": "programs waited for disks in {range} % of the time (flagged above 5 %)",
    "client throttled": "the client was throttled by its CPU limit in {range} % of the time (flagged above 5 %)",
    "server throttled": "the server was throttled by its CPU limit in {range} % of the time (flagged above 5 %)",
    "prometheus": "Prometheus had no samples, or not all, of what the study asks for (each trial's line says what)",
    "generator late": "the client sent {range} % of the requests late by itself (flagged above 1 %)",
    "waited for a connection": "{range} % of the requests waited for a free connection (flagged above 1 %)",
    "generator rested": "the client rested in {range} % of its time, while it connected: what was used in it is less"
    " than what the load takes (flagged above 20 %)",
    "generator took": "CPUs were full, and the client took more of them than the server: {range} CPUs",
    "generator saturated": "the client was itself the limit (its CPU was full, or it was throttled)",
}
"""Kinds of flags as `weighbridge.meters.host` writes them, in words. Any other is shown as it is."""

NEARLY_ALL = 0.75
"""Share of the environments from which a flag is said once for all of them."""


def kind(flag: str) -> str:
    """What a trial's flag is about, without its figures: ``steal 3.1 %`` -> ``steal``."""
    return re.split(r"[:=(]|\s+[-+]?\d", flag, maxsplit=1)[0].strip() or flag


def words(about: str, flags: Iterable[str]) -> str:
    """A kind of flag in words, with the range of its figures."""
    if about not in WORDS:
        return about
    numbers = [float(found[0]) for flag in flags if (found := re.search(r"\d+(\.\d+)?", flag))]
    return WORDS[about].format(range=_range(numbers), cpus=_range([each / 100 for each in numbers]))


def _range(numbers: Sequence[float]) -> str:
    if not numbers:
        return "?"
    low, high = (plain(pick(numbers), 2) for pick in (min, max))
    return low if low == high else f"{low} to {high}"


def about_flags(environment: str, trials: Sequence[TrialRow]) -> list[Remark]:
    """Give a remark for each kind of flag that an environment's trials have, the most frequent first."""
    found = []
    for each, count in _kinds(trials).most_common():
        code = "errors" if each.startswith("error") else "trial"
        text = words(each, _flags(trials, each))
        found.append(Remark(code, f"{environment}: {text} in {count} of {len(trials)} trials"))
    return found


def said_once(trials: Sequence[TrialRow]) -> tuple[list[str], frozenset[str]]:
    """What is about nearly all environments: a sentence each, and the kinds, which need not be said again."""
    environments = {trial.environment for trial in trials}
    concerned = Counter(
        each for name in environments for each in _kinds([trial for trial in trials if trial.environment == name])
    )
    kinds = [each for each in _kinds(trials) if len(environments) > 1 and _many(concerned[each], len(environments))]
    kinds = [each for each in kinds if not each.startswith("error")]
    lines = [
        f"in {_kinds(trials)[each]} of {len(trials)} trials{' ' if each in WORDS else ': '}"
        f"{words(each, _flags(trials, each))}"
        for each in kinds
    ]
    return lines, frozenset(kinds)


def without(texts: Iterable[str], kinds: Iterable[str]) -> list[str]:
    """The remarks' texts but for those about these kinds of flags."""
    starts = tuple(WORDS.get(each, each).split("{")[0] for each in kinds)
    return [text for text in texts if not text.partition(": ")[2].startswith(starts)] if starts else list(texts)


def _many(concerned: int, of: int) -> bool:
    return concerned >= NEARLY_ALL * of


def _kinds(trials: Sequence[TrialRow]) -> Counter[str]:
    return Counter(each for trial in trials for each in sorted({kind(flag) for flag in trial.flags}))


def _flags(trials: Sequence[TrialRow], about: str) -> list[str]:
    return [flag for trial in trials for flag in trial.flags if kind(flag) == about]
