"""A run in the index of a registry: its place, its machine, and a row for each cost. All texts are short."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weighbridge.analysis.results import Analysis
from weighbridge.model.host import HERE, MACHINE_ID
from weighbridge.model.names import RunId, SafeName
from weighbridge.model.text import one_line
from weighbridge.report.text.answer import answer
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import display_name, names_of, use_display_names
from weighbridge.report.text.formatting import plural
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.trust import control_rounds, noise_range
from weighbridge.report.text.verdicts import judged_cost_text, reasoned_verdict
from weighbridge.store.run import RunStore

MOST_COSTS = 200
"""The costs of one run that the index shows."""
_NAME, _SENTENCE = 120, 400
"""The most characters of a name and of a sentence."""
_SLUG = 40
_HARDWARE = ("model", "CPU", "CPUs online", "cores", "memory", "architecture")
"""The facts that distinguish machines without an id."""
_CONTROL = {True: "passed", False: "FAILED", None: "none"}


@dataclass(frozen=True, slots=True)
class EntryCost:
    """The cost of one environment on one primary metric, in the words of the index."""

    environment: str
    metric: str
    cost: str
    verdict: str
    shown_as: str


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """A run in the words of the index."""

    run_id: RunId
    folders: tuple[SafeName, SafeName]
    """The folders of its machine and its study."""
    machine: str
    study: str
    question: str
    created: str
    rounds: str
    control: str
    answer: str
    costs: tuple[EntryCost, ...]
    further: int
    """The number of costs that are not in ``costs``."""


def entry_of(store: RunStore, analysis: Analysis) -> RegistryEntry:
    """Return the entry of a run. Raises RunDirectoryError if the run is damaged."""
    machine = machine_facts(store)
    with use_display_names(names_of(analysis)):
        costs = [*_costs(analysis)]
        return RegistryEntry(
            run_id=store.run_id,
            folders=(machine_folder(machine), folder_name(analysis.study, "study")),
            machine=machine_title(machine),
            study=one_line(analysis.study, _NAME),
            question=one_line(analysis.question, _SENTENCE),
            created=date_words(float(store.info().get("created", "nan"))),
            rounds=control_rounds(analysis) or plural(analysis.plan.blocks, "round"),
            control=_control(analysis),
            answer=one_line(answer(analysis), _SENTENCE),
            costs=tuple(costs[:MOST_COSTS]),
            further=max(0, len(costs) - MOST_COSTS),
        )


def _costs(analysis: Analysis) -> Iterator[EntryCost]:
    for report in analysis.headlines:
        for row in report.comparisons:
            if not row.aa:
                environment, metric = display_name(row.environment), metric_title(report)
                cost, verdict = judged_cost_text(row, report.unit), reasoned_verdict(row)
                yield EntryCost(
                    one_line(environment, _NAME), one_line(metric, _NAME), cost[:_SENTENCE], verdict[:_SENTENCE],
                    row.shown_as,
                )  # fmt: skip


def _control(analysis: Analysis) -> str:
    noise = f" ({size})" if analysis.trust.trusted and (size := noise_range(analysis)) else ""
    return f"{_CONTROL[analysis.trust.trusted]}{noise}"


# -- machines --------------------------------------------------------------------------------------


def machine_facts(store: RunStore) -> dict[str, str]:
    """Return the facts of the machine that measured a run, the latest value of each."""
    return {key: value for scope, key, value, _ in store.facts() if scope == HERE}


def machine_title(facts: Mapping[str, str]) -> str:
    """Return a machine in words: ``Intel Xeon Gold 6148, 2 CPUs, 23.5 GiB, KVM``."""
    online = facts.get("CPUs online", "")
    count = cpu_count(online)
    cpus = f"{count} CPU{'' if count == 1 else 's'}" if count else ""
    virtual = facts.get("virtualisation", "")
    parts = (_cpu(facts), cpus, facts.get("memory"), "" if virtual in ("none seen", "not known") else virtual)
    return one_line(", ".join(filter(None, parts)) or "unknown machine", _NAME)


def cpu_count(listed: str) -> int:
    """Return how many CPUs a list such as ``0-3,8`` has; 0 if it is not such a list."""
    if not re.fullmatch(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?){0,99}", listed):
        return 0
    ranges = [part.split("-") for part in listed.split(",")]
    return sum(max(0, int(each[-1]) - int(each[0]) + 1) for each in ranges)


def _cpu(facts: Mapping[str, str]) -> str:
    words = re.sub(r"\((?:R|TM|C)\)", " ", facts.get("CPU", ""), flags=re.IGNORECASE)
    return " ".join(words.split())


def machine_folder(facts: Mapping[str, str]) -> SafeName:
    """Return the folder of a machine: its CPU, and a digest of its id or else of its hardware."""
    identity = [facts[MACHINE_ID]] if facts.get(MACHINE_ID) else [facts.get(name, "") for name in _HARDWARE]
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:8]
    return SafeName(f"{folder_name(_cpu(facts), 'machine')}-{digest}")


def folder_name(text: str, otherwise: str) -> SafeName:
    """Return a name for a folder with only small letters, digits and single hyphens, whatever the text is."""
    ascii_text = unicodedata.normalize("NFKD", text[:1000]).encode("ascii", "ignore").decode().lower()
    return SafeName(re.sub(r"[^a-z0-9]+", "-", ascii_text).strip("-")[:_SLUG].strip("-") or otherwise)
