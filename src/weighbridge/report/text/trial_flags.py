"""Flags of trials in words: the only module that turns a flag's code into a sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from weighbridge.analysis.metered import place_of
from weighbridge.analysis.remarks.flags import FigureRange, FlaggedTrials, common_flags, figure_ranges, flagged_trials
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.flag import Flag, FlagCode, FlagKind
from weighbridge.report.text.formatting import plain

FOREIGN = 0.75
"""CPUs that other programs can use before a trial is flagged: a test compares it with `weighbridge.meters.host`."""

SHOWN_FLAGS = 3
"""Kinds of flags that the terminal shows, with the number of their trials."""


@dataclass(frozen=True, slots=True)
class FlagWords:
    """The words of a code: ``short`` for one trial, ``long`` for several; ``{}`` is the figure.

    ``figure`` is the name of the figure, which is multiplied by ``factor``.
    """

    short: str
    long: str
    figure: str = ""
    factor: float = 1.0


def _share(short: str, long: str) -> FlagWords:
    return FlagWords(f"{short} {{}}%", long, "share", 100.0)


_LIMIT_IN = "by its CPU limit for {}% of the time (flagged above 5%)"
WORDS: dict[str, FlagWords] = {
    FlagCode.LOAD: FlagWords("load {}", "the machine's load was {} at the start (flagged above 2 per CPU)", "load"),
    FlagCode.OTHER_WORK: FlagWords(
        "other programs used {} CPUs",
        f"other programs, the engine or the kernel used {{}} CPUs (flagged above {FOREIGN:g})",
        "cpus",
    ),
    FlagCode.STEAL: _share("steal", "the hypervisor took {}% of the CPU time (steal; flagged above 1%)"),
    FlagCode.MEMORY_PRESSURE: _share(
        "memory pressure", "programs waited for memory for {}% of the time (flagged above 5%)"
    ),
    FlagCode.IO_PRESSURE: _share("io pressure", "programs waited for disks for {}% of the time (flagged above 5%)"),
    FlagCode.THROTTLED: _share("throttled", f"was throttled {_LIMIT_IN}"),
    FlagCode.PROMETHEUS: FlagWords(
        "prometheus",
        "Prometheus lacked some of the requested samples (each trial's line says which)",
    ),
    FlagCode.GENERATOR_LATE: _share(
        "generator late", "the load generator sent {}% of the requests late (flagged above 1%)"
    ),
    FlagCode.CONNECTION_WAIT: _share(
        "waited for a connection", "{}% of the requests waited for a free connection (flagged above 1%)"
    ),
    FlagCode.CONNECTION_LOST: FlagWords(
        "waited {} s for a connection",
        "a connection request was lost and the program waited {} s, so this rate reflects the stall",
        "seconds",
    ),
    FlagCode.CONNECTION_TABLE: _share(
        "connection table full to",
        "the kernel's table of connections (nf_conntrack) was {}% full (flagged above 90%); a full table drops"
        " connections, also those of other programs",
    ),
    FlagCode.GENERATOR_RESTED: _share(
        "generator idle",
        "the load generator was idle for {}% of its time because it was connecting (flagged above 20%), so resource"
        " use is lower than the load requires",
    ),
    FlagCode.GENERATOR_TOOK: FlagWords(
        "generator took {} CPUs, more than the server",
        "CPUs were full, and the load generator used more than the server: {} CPUs",
        "client",
    ),
    FlagCode.GENERATOR_SATURATED: FlagWords(
        "generator saturated", "limited by the load generator (CPU saturated or throttled)"
    ),
    FlagCode.SEARCH_GENERATOR: FlagWords(
        "search ended by the generator",
        "above this rate the generator, not the server, missed the objective",
    ),
    FlagCode.SEARCH_CONNECTIONS: FlagWords(
        "search ended by its connections", "all connections were in use when the objective was missed"
    ),
    FlagCode.SEARCH_TO: FlagWords("search ended by search_to", "no rate up to search_to missed the objective"),
    FlagCode.PROGRAM_ERRORS: FlagWords("{} errors", "the program also reported {} errors", "count"),
    FlagCode.READ_AGAIN: FlagWords(
        "read {} times over",
        "the data was read {} times over, after the first time mostly from the page cache",
        "times",
    ),
    FlagCode.CABLE: _share("limited by the cable", "the cable carried {}% of its rate"),
    FlagCode.ASKED_RATE: _share("limited by the requested rate", "reached {}% of the requested rate"),
    FlagCode.GENERATOR: _share("limited by the generator", "the load generator used {}% of its CPU"),
    FlagCode.CPU_QUOTA: _share("limited by the CPU quota", "throttled by its CPU quota for {}% of the time"),
    FlagCode.CPUS: _share("limited by the CPUs", "{}% of the CPUs were busy"),
    FlagCode.DISK: _share("limited by the disk", "programs waited for disks for {}% of the time"),
    FlagCode.NO_BOTTLENECK: FlagWords("no bottleneck known", "no bottleneck is known"),
    FlagCode.CLOCKS: _share(
        "clocks disagree by",
        "the clocks of the {where} and of this machine disagree by {}% on its duration (flagged above 1%): a clock is"
        " wrong, or a machine is too busy",
    ),
    FlagCode.CONNECTION_BROKE: FlagWords(
        "connection lost for {} s",
        "the connection to the {where} was lost for {} s; the result is complete, but machine-wide readings cover a"
        " longer period",
        "seconds",
    ),
    FlagCode.NO_READINGS: FlagWords("no readings", "the meters of {where} gave no readings"),
}
"""Codes in words. A code from a plug-in is shown as it is, with its figures."""


def flag_text(flag: Flag) -> str:
    """Return one flag of a trial: ``server throttled 20%``."""
    return _flag_text(flag.code, flag.where, tuple(flag.figures.items()), flag.text)


@lru_cache(maxsize=100_000)  # a trial's flags stand in every chart of its metrics
def _flag_text(code: str, where: str, figures: tuple[tuple[str, float], ...], text: str) -> str:
    flag = Flag(code, where, dict(figures), text)
    if flag.code == FlagCode.OTHER:
        return flag.text
    if code not in WORDS:
        return stable_text([flag])
    return f"{_short_text(FlagKind(code, where, ''), figure_ranges([flag]))}{f': {text}' if text else ''}"


def _short_text(kind: FlagKind, figures: Iterable[FigureRange]) -> str:
    """Return a kind of flag in two or three words, with the range of its figure: ``server throttled 3 to 20%``."""
    wording = WORDS.get(kind.code)
    if wording is None:
        return flag_kind_text(kind, figures)
    where = f"{kind.where}: " if kind.where.startswith("host ") else f"{place_of(kind.where)} " if kind.where else ""
    return f"{where}{wording.short.format(_figure(figures, wording))}"


def flags_text(flags: Iterable[Flag]) -> str:
    """Return the flags of one trial."""
    return "; ".join(flag_text(flag) for flag in flags)


def stable_text(flags: Iterable[Flag]) -> str:
    """Return the flags of one trial for machines: ``throttled where=server share=0.2; steal share=0.031``."""
    return "; ".join(" ".join(_parts(flag)) for flag in flags)


def _parts(flag: Flag) -> Iterable[str]:
    yield str(flag.code)
    if flag.where:
        yield f"where={flag.where}"
    yield from (f"{name}={value:g}" for name, value in flag.figures.items())
    if flag.text:
        yield f"text={flag.text}"


def flag_kind_text(kind: FlagKind, figures: Iterable[FigureRange]) -> str:
    """Return a kind of flag in words, with the range of its figures."""
    wording = WORDS.get(kind.code)
    if wording is None:
        return kind.text or " ".join(filter(None, (kind.code, kind.where)))
    text = wording.long.format(_figure(figures, wording), where=place_of(kind.where))
    if kind.code == FlagCode.THROTTLED:
        return f"the {place_of(kind.where)} {text}"
    return f"on {kind.where}, {text}" if kind.where and "{where}" not in wording.long else text


def _figure(figures: Iterable[FigureRange], wording: FlagWords) -> str:
    """Return the range of the figure that is shown: ``0.81 to 1.4``."""
    shown = next((each for each in figures if each.name == wording.figure), None)
    if shown is None:
        return "?"
    low, high = (plain(wording.factor * value, 2) for value in (shown.low, shown.high))
    return low if low == high else f"{low} to {high}"


def common_flag_sentences(trials: Sequence[TrialRow]) -> tuple[list[str], frozenset[FlagKind]]:
    """Return a sentence for each kind of flag that nearly all environments have, and these kinds."""
    common = common_flags(trials)
    lines = [f"{each.count} of {each.trials} trials: {flag_kind_text(each.flag, each.figures)}" for each in common]
    return lines, frozenset(each.flag for each in common)


def _loads(flagged: FlaggedTrials) -> Iterable[tuple[str, str, str, str]]:
    """Return the load of other programs as `flagged_sentence` compares it: code, host, least and most."""
    for each in flagged.figures:
        yield flagged.flag.code, flagged.flag.where, plain(each.low, 2), plain(each.high, 2)


def flagged_sentence(analysis: Analysis) -> str:
    """Return the most frequent flags of a run: ``Flagged trials: steal 1.1 to 27% in 118 of 360``.

    Without the load of other programs that `weighbridge.report.text.trust.disturbed_sentence` already gives.
    """
    said = analysis.disturbance.taken if analysis.disturbance.heavy else ()
    loads = {(each.code, each.host, plain(each.low, 2), plain(each.high, 2)) for each in said}
    flagged = [each for each in flagged_trials("", analysis.trials) if loads.isdisjoint(_loads(each))]
    if not flagged:
        return ""
    number = len(analysis.trials)
    clauses = [
        f"{_short_text(each.flag, each.figures)} in {each.count} of {number}" for each in flagged[:SHOWN_FLAGS]
    ]
    more = f"; {len(flagged) - SHOWN_FLAGS} more kinds of flags" if len(flagged) > SHOWN_FLAGS else ""
    return f"Flagged trials: {'; '.join(clauses)}{more}"
