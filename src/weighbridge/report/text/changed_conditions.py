"""What is not the same in two runs, in words: facts, settings, and what only one of them has."""

from collections.abc import Sequence

from weighbridge.analysis.between_runs import WhyNoOwnValues, WhyNot
from weighbridge.analysis.compared_run import ComparedRun, FactChange, FactKind, OnlyIn, Part, SettingChange
from weighbridge.report.text.formatting import margin
from weighbridge.report.text.sessions import date_words

KINDS = {
    FactKind.KERNEL: "kernel", FactKind.ENGINE: "engine", FactKind.MITIGATIONS: "mitigations",
    FactKind.PATH: "network path", FactKind.PACKAGES: "package", FactKind.LAUNCHER: "launcher",
    FactKind.PROGRAM: "measured program",
    FactKind.CPU: "CPU", FactKind.WEIGHBRIDGE: "Weighbridge", FactKind.IDLE: "idle CPUs",
    FactKind.MACHINE: "machine", FactKind.SITE: "environment",
}  # fmt: skip
"""What a fact is about."""
LONGEST = 160
"""Letters of a value that are shown."""
NAMED = 4
"""Facts that are named in short."""
NOT_KNOWN = "not known"
NOTHING_CHANGED = "no fact of the machine, the engine, the paths or the programs has changed"


def run_letter(number: int) -> str:
    """Return the letter of the first, second, ... run: A, B, ...; R27 after Z."""
    return chr(ord("A") + number) if number < 26 else f"R{number + 1}"


def run_words(letter: str, run: ComparedRun) -> str:
    """Return a run in one line: ``A: runs/before (2026-11-25 02:10 UTC, 15 blocks, trusted)``."""
    parts = [*([date_words(run.created)] if run.created else []), blocks_words(run), trust_words(run)]
    return f"{letter}: {run.name} ({', '.join(parts)})"


def blocks_words(run: ComparedRun) -> str:
    """Return how many blocks the headline metrics have: ``15 blocks``, ``10 to 15 blocks``."""
    found = sorted({row.blocks for report in run.analysis.headlines for row in report.comparisons})
    if not found:
        return "no complete block"
    low, high = found[0], found[-1]
    return f"{low} block{'' if low == 1 else 's'}" if low == high else f"{low} to {high} blocks"


def trust_words(run: ComparedRun) -> str:
    """Return what the A/A arm says of the session."""
    return {True: "trusted", False: "UNTRUSTED", None: "not checked"}[run.analysis.trust.trusted]


def fact_lines(facts: Sequence[FactChange]) -> list[str]:
    """Return a line for each fact that changed, those of packages in one; one that says so where none did."""
    if not facts:
        return [NOTHING_CHANGED]
    packages = [each for each in facts if each.kind is FactKind.PACKAGES]
    lines, told = [], False
    for each in facts:
        if each.kind is not FactKind.PACKAGES:
            lines.append(fact_words(each))
        elif not told:
            listed = ", ".join(f"{one.fact} {_arrow(one.before, one.after)}" for one in packages)
            lines.append(f"{len(packages)} package{'' if len(packages) == 1 else 's'}: {listed}")
            told = True
    return lines


def fact_words(change: FactChange) -> str:
    """Return a fact that changed: ``docker in bridge: 20.10 → 29.1``."""
    name = change.fact
    if name == "version" and change.kind is FactKind.WEIGHBRIDGE:
        name = "Weighbridge"
    if change.kind is FactKind.LAUNCHER:
        return "launcher: another, so that times of short programs may differ"
    if change.kind is FactKind.PROGRAM:
        name = f"measured program {name}"
    if change.kind is FactKind.MITIGATIONS:
        return f"{name}: {_parts_apart(change.before, change.after)}"
    where = f" on host {change.place}" if change.place else ""
    where += f" in {', '.join(change.environments)}" if change.environments else ""
    return f"{name.removeprefix('version of ')}{where}: {_arrow(change.before, change.after)}"


def setting_words(change: SettingChange) -> str:
    """Return a setting that differs: ``bridge · userland proxy: yes → no``."""
    place = f"{change.name} · " if change.name else ""
    if change.setting == "equivalence":
        before, after = (margin(x) if isinstance(x, float) else _value(x) for x in (change.before, change.after))
    else:
        before, after = _value(change.before), _value(change.after)
    return f"{place}{change.setting.replace('_', ' ')}: {before} → {after}"


def only_lines(only: Sequence[OnlyIn], first: str, second: str) -> list[str]:
    """Return a line for each run and part of a study: ``only in A: environments host, macvlan``."""
    lines = []
    for letter, later in ((first, False), (second, True)):
        for part in Part:
            names = [each.name for each in only if each.part is part and each.second is later]
            if names:
                lines.append(f"only in {letter}: {part}{'' if len(names) == 1 else 's'} {', '.join(names)}")
    return lines


def why_no_own_values(reasons: Sequence[WhyNoOwnValues]) -> str:
    """Return why absolute rates are not compared; empty where they are."""
    told = []
    for each in reasons:
        names = ", ".join(each.about)
        many = len(each.about) > 1
        told.append({
            WhyNot.MACHINE: f"facts of the machine are not the same ({names})",
            WhyNot.UNTRUSTED: f"{names} {'are' if many else 'is'} not trusted",
            WhyNot.NOT_KNOWN: f"{names} {'have' if many else 'has'} no A/A arm that says whether to trust it",
        }[each.reason])  # fmt: skip
    return f"Absolute rates are not compared: {'; '.join(told)}." if told else ""


def changes_in_short(facts: Sequence[FactChange]) -> str:
    """Return which facts changed, without their values: ``kernel, docker, 14 packages and 3 more``."""
    names = dict.fromkeys(_short_name(each) for each in facts if each.kind is not FactKind.PACKAGES)
    packages = sum(each.kind is FactKind.PACKAGES for each in facts)
    told = list(names)[:NAMED]
    if packages:
        told.append(f"{packages} package{'' if packages == 1 else 's'}")
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(told)}{more}"


def _short_name(change: FactChange) -> str:
    return "Weighbridge" if change.kind is FactKind.WEIGHBRIDGE else change.fact.removeprefix("version of ")


def _arrow(before: str, after: str) -> str:
    return f"{_shortened(before) or NOT_KNOWN} → {_shortened(after) or NOT_KNOWN}"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _parts_apart(before: str, after: str) -> str:
    """Those of the parts of a list that are not in the other: a list of mitigations is longer than a screen."""
    one, other = before.split("; "), after.split("; ")
    gone, come = "; ".join(x for x in one if x not in other), "; ".join(x for x in other if x not in one)
    return _arrow(gone, come)


def _value(value: object) -> str:
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, tuple):
        return ", ".join(_value(each) for each in value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else _shortened(str(value))
