"""`weighbridge plan`, and the types of its JSON document, from which the schema is made.

docs/reference/json.md explains the keys.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import typer
from pydantic import ConfigDict, with_config
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from typing_extensions import TypedDict

from weighbridge import registry
from weighbridge.cli import approval
from weighbridge.cli.commands.studies import PlanOptions
from weighbridge.cli.doctor import UNVERIFIED
from weighbridge.cli.options import EXPLAIN
from weighbridge.cli.output import out, print_json
from weighbridge.errors import StudyError, Unavailable
from weighbridge.model.environment import NOT_CHECKED
from weighbridge.model.explained import PLACEBO
from weighbridge.model.facts import SHARED
from weighbridge.model.level import level_label
from weighbridge.model.options import External
from weighbridge.model.plugin import Readiness
from weighbridge.model.stored_study import secrets_of
from weighbridge.model.study import Arm, Study
from weighbridge.report.text.formatting import plural
from weighbridge.runner import planned as planning
from weighbridge.runner import preflight, userlands
from weighbridge.runner.estimate import clock, clock_range
from weighbridge.runner.known_noise import Decidable
from weighbridge.runner.lengths import length_of
from weighbridge.runner.notes import unverified_parts
from weighbridge.runner.planned import PlannedRun
from weighbridge.runner.pollers import lacking as cannot_poll
from weighbridge.runner.pollers import wants_polling
from weighbridge.study import loader
from weighbridge.study.explained import unexplained
from weighbridge.study.external import ExternalResource, external_resources
from weighbridge.study.settings import with_settings

_NOT_EXAMINED = (
    "without --yes, Weighbridge {} and contacted nothing. It read only the study and the configuration files "
    "shown above."
)
VERSION: Final = 1
"""The version of the document of ``plan --json``."""


class PlannedEnvironment(TypedDict):
    """One environment, its limits, and whether it can be opened here. A run skips optional ones that cannot.

    ``explains`` names the environment whose cost it explains; it equals that environment with these mechanisms
    ``off``.
    """

    name: str
    kind: str
    aa_of: str | None
    explains: str | None
    off: list[str]
    optional: bool
    ready: bool
    why: str
    remedy: str
    caveat: str
    unverified: str
    resources: dict[str, Any]
    shm_size: int | None
    sysctls: dict[str, str]


class PlannedMechanism(TypedDict):
    """A mechanism that is switched off to explain a cost; ``why_not`` is the reason if that is impossible, or ""."""

    environment: str
    kind: str
    title: str
    switched: str
    crossed: bool
    why_not: str


class PlannedHosts(TypedDict):
    """The hosts, and the host of each role."""

    hosts: dict[str, dict[str, Any]]
    placement: dict[str, list[str]]
    inside: list[Literal["client", "server"]]


class PlannedWorkload(TypedDict):
    """One workload at one level. If it is ``short``, a pilot round chooses the length of its trials."""

    label: str
    kind: str
    level: dict[str, str]
    link: Literal["none"] | None
    short: bool


class PlannedTrial(TypedDict):
    """One trial, in running order."""

    block: int
    workload: str
    level: dict[str, str]
    environment: str


PlannedTime = TypedDict("PlannedTime", {"from": int, "to": int})
"""The expected whole seconds of a run with the fewest and with the most rounds, including its set-up."""


class PlannedVerdicts(TypedDict):
    """The verdicts that a run of this size can reach; ``sentence`` summarises them.

    ``smallest_cost`` is the smallest cost that ten minutes can detect on this machine (``doctor --noise``); 0.02 is
    2%. ``noise_outdated`` names the fact of the machine that changed since, or ``age``.
    """

    verdicts: Literal["none", "exploratory", "reliable"]
    blocks: int
    comparisons: int
    visible: dict[str, float]
    visible_deviations: float | None
    noise_measured: str
    smallest_cost: float | None
    noise_outdated: str | None
    fewest_blocks: int
    reliable_blocks: int
    sentence: str


class PlannedImage(TypedDict):
    """How the image of a root filesystem gets to a host. ``bytes`` is the size of its archive, null before the build.

    ``on_nodes`` has the possible nodes of the host and whether each has the image; null means unknown.
    """

    host: str
    userland: str
    bytes: int | None
    way: str
    on_nodes: dict[str, bool | None]


class BroughtDocument(TypedDict):
    """A program, file or machine that the study brings from outside."""

    what: str
    place: str
    value: str
    lines: list[str]


@with_config(ConfigDict(extra="forbid"))
class PlanDocument(TypedDict):
    """The document of ``weighbridge plan STUDY --json``.

    ``seconds`` includes ``set_up_s``: builds of missing root filesystems, and the start and the end of hosts and
    environments.
    """

    version: Literal[1]
    study: str
    question: str
    baseline: str
    environments: list[PlannedEnvironment]
    mechanisms: list[PlannedMechanism]
    trace: str | None
    refusals: list[str]
    hosts: PlannedHosts
    workloads: list[PlannedWorkload]
    packages: list[str]
    images: list[PlannedImage]
    blocks: int
    most_blocks: int
    target: float | None
    budget_s: float | None
    within_s: float | None
    trials: list[PlannedTrial]
    seconds: PlannedTime
    set_up_s: int
    set_up_omits_unapproved: bool
    seed: int
    decides: PlannedVerdicts
    cpu_idle: Literal["halt", "poll"]
    brings: list[BroughtDocument]
    secrets: list[str]
    warnings: list[str]


def plan(options: PlanOptions) -> None:
    """Print the plan of a study. Exits with the code of the refusal if a run would be refused."""
    named, origin = approval.load_named(options.study, options.profile, yes=options.yes)
    loaded = with_settings(named, [*options.settings, *([EXPLAIN] if options.explain else [])])
    chosen = approval.approved_already(
        loaded if options.rounds is None else loader.with_blocks(loaded, options.rounds), origin, yes=options.yes
    )
    planned = planning.plan(chosen)
    document = describe(planned, quick_test=options.quick_test)
    if options.as_json:
        print_json(document)
    else:
        _print(document, planned, with_trials=options.trials)
    if document["refusals"]:
        few = not options.quick_test and preflight.too_few_blocks(chosen)
        raise typer.Exit((StudyError if few else Unavailable).exit_code)


def describe(planned: PlannedRun, *, quick_test: bool = False) -> PlanDocument:
    """Return a planned run as data: environments with readiness, trials in order, duration, possible verdicts."""
    study, file, unverified = planned.study, planned.study.file, unverified_parts(planned.declared)
    missing, resources = planned.missing_root_filesystems, external_resources(planned.declared)
    set_up_s, (least, most) = planned.set_up_s, planned.trials_s
    openable = _openable(planned, missing)
    refusals, server_notes = _refusals(planned, missing, quick_test=quick_test)
    names = unexplained(study)
    return {
        "version": VERSION,
        "study": file.study,
        "question": file.question,
        "baseline": file.baseline,
        "environments": [
            _environment(planned.declared, arm, openable[arm.name], unverified.get(arm.name, ""))
            for arm in planned.declared.arms
        ],
        "mechanisms": _mechanisms(planned.declared, openable),
        "trace": file.trace,
        "refusals": refusals,
        "hosts": hosts_of(study),
        "workloads": _workloads(study),
        "packages": list(userlands.userland_of(study).packages),
        "images": _images(study),
        "blocks": planned.blocks,
        "most_blocks": planned.most_blocks,
        "target": file.repetitions.target,
        "budget_s": file.repetitions.budget,
        "within_s": file.repetitions.within,
        "trials": [
            {"block": trial.block, "workload": trial.workload, "level": trial.level.factors,
             "environment": trial.environment}
            for trial in planned.trials
        ],
        "seconds": {"from": round(set_up_s + least), "to": round(set_up_s + most)},
        "set_up_s": round(set_up_s),
        "set_up_omits_unapproved": planned.set_up_omits_unapproved,
        "seed": file.seed,
        "decides": _decides(planned.decidable),
        "cpu_idle": "poll" if wants_polling(file) and not cannot_poll() else "halt",
        "brings": [
            {"what": str(each.kind), "place": each.place, "value": each.value, "lines": list(each.lines)}
            for each in resources
        ],
        "secrets": [*secrets_of(study)],
        "warnings": [
            *_notes(planned, unverified, resources), *server_notes,
            *([approval.nothing_switched(names)] if names else []),
        ],
    }  # fmt: skip


def _openable(planned: PlannedRun, missing: Sequence[Readiness]) -> Mapping[str, Readiness]:
    """Return whether each environment can be opened. If one cannot, the environments that explain it are skipped."""
    states = {name: missing[0] if missing and state.ready else state for name, state in planned.readiness.items()}
    explained = {arm.name: arm.explains.environment for arm in planned.declared.arms if arm.explains}
    return states | {name: states[other] for name, other in explained.items() if not states[other].ready}


def _refusals(planned: PlannedRun, missing: Sequence[Readiness], *, quick_test: bool) -> tuple[list[str], list[str]]:
    """Return the reasons to refuse the run, and notes of its Prometheus server. Contacts it for an approved study."""
    server_notes, of_study = [], [planned.nothing_left, "" if quick_test else preflight.too_few_blocks(planned.study)]
    try:
        server_notes = planning.require_prometheus(planned.study)
    except (StudyError, Unavailable) as error:
        of_study.append(str(error))
    root = [f"cannot build the root filesystem here: {each.detail}. Try: {each.remedy}" for each in missing[:1]]
    return [*(why for why in of_study if why), *planned.refusals, *root], server_notes


def _notes(planned: PlannedRun, unverified: Mapping[str, str], resources: Sequence[ExternalResource]) -> list[str]:
    """Return notes on the study, and on the environments that can be opened with a limitation."""
    study, states = planned.study, planned.readiness.values()
    notes = [*preflight.warnings(study), *(f"{what} is {UNVERIFIED}: {why}" for what, why in unverified.items())]
    notes += dict.fromkeys(f"{each.caveat}: {each.detail}" for each in states if each.caveat and each.detail)
    if not study.approved and any(each.kind not in (External.COMMAND, External.ARGUMENT) for each in resources):
        notes.append(_NOT_EXAMINED.format("started only docker-compose" if study.compose else "started"))
    return notes


def _environment(study: Study, arm: Arm, state: Readiness, unverified: str) -> PlannedEnvironment:
    return {
        "name": arm.name, "kind": arm.kind, "aa_of": arm.aa_of,
        "explains": arm.explains.environment if arm.explains else None,
        "off": [*arm.explains.off] if arm.explains else [], "optional": arm.optional,
        "ready": state.ready, "why": state.detail, "remedy": state.remedy, "caveat": state.caveat,
        "unverified": unverified, "resources": _resources(study, arm), "shm_size": arm.shm_size,
        "sysctls": dict(arm.sysctls),
    }  # fmt: skip


def _workloads(study: Study) -> list[PlannedWorkload]:
    chooses = study.file.repetitions.within is not None
    return [
        {"label": cell.label, "kind": cell.kind, "level": cell.level.factors, "link": cell.link,
         "short": chooses and length_of(cell) is not None}
        for cell in study.cells
    ]  # fmt: skip


def _images(study: Study) -> list[PlannedImage]:
    return [
        {"host": each.host, "userland": each.userland, "bytes": each.size, "way": each.way,
         "on_nodes": dict(each.on_nodes)}
        for each in userlands.image_ways(study)
    ]  # fmt: skip


def _decides(size: Decidable) -> PlannedVerdicts:
    deviations = size.visible_deviations
    return {
        "verdicts": size.verdicts,
        "blocks": size.blocks,
        "comparisons": size.comparisons,
        "visible": dict(size.visible),
        "visible_deviations": deviations if math.isfinite(deviations) else None,
        "noise_measured": size.measured,
        "smallest_cost": size.noise.cost,
        "noise_outdated": size.noise.outdated.what if size.noise.outdated else None,
        "fewest_blocks": size.fewest_blocks,
        "reliable_blocks": size.reliable_blocks,
        "sentence": approval.decides_sentence(size),
    }


def _mechanisms(study: Study, ready: Mapping[str, Readiness]) -> list[PlannedMechanism]:
    """Return the mechanisms of a study, each with the reason if it cannot be switched off here."""
    rows: list[PlannedMechanism] = []
    for each in study.mechanisms:
        arm = study.arms_by_off(each.environment).get(frozenset({*each.off_with, each.kind}), "")
        state = ready.get(arm)
        here = "" if state is None or state.ready else f"{state.detail}; {state.remedy}"
        rows.append(
            {"environment": each.environment, "kind": each.kind, "title": each.title, "switched": each.switched,
             "crossed": each.crossed, "why_not": each.refused or here}
        )  # fmt: skip
    return rows


def _explained_lines(planned: PlanDocument) -> Iterator[str | Table]:
    """Yield the mechanisms to switch off per explained environment, those that cannot be, and the extra time."""
    arms = {arm["name"]: arm["explains"] for arm in planned["environments"] if arm["ready"]}
    trials, times, set_up_s = planned["trials"], planned["seconds"], planned["set_up_s"]
    for name in dict.fromkeys(each["environment"] for each in planned["mechanisms"] if each["environment"] in arms):
        mine = [each for each in planned["mechanisms"] if each["environment"] == name]
        crossed = any(each["crossed"] for each in mine)
        how = "in every combination" if crossed else "one at a time, and all together"
        several = sum(not each["why_not"] for each in mine) > 1
        if not any(not each["why_not"] for each in mine):
            yield f"\nto explain {name}, nothing can be switched off:"
            yield from (f"  {each['title']}: {each['why_not']}" for each in mine)
            continue
        yield f"\nto explain {name}, switched off{f' {how}' if several else ''}:"
        table = Table(box=None, pad_edge=False, show_header=False)
        for each in (each for each in mine if not each["why_not"]):
            table.add_row(f"  {each['title']}", each["switched"])
        yield table
        for each in (each for each in mine if each["why_not"]):
            yield f"  cannot be switched off: {each['title']} ({each['why_not']})"
        if any(arm["explains"] == name and arm["off"] == [PLACEBO] for arm in planned["environments"]):
            yield f"  {approval.placebo_line(name)}"
        share = sum(arms.get(each["environment"]) == name for each in trials) / max(1, len(trials))
        number = sum(explains == name for explains in arms.values())
        took = clock_range(*(round((times_s - set_up_s) * share) for times_s in (times["from"], times["to"])))
        yield f"  this adds {plural(number, 'environment')}: {took} of the time below"
        if several and not crossed:
            names = ", ".join(each["kind"] for each in mine if not each["why_not"])
            yield f"  to choose some (at most four): explain: {{{name}: [{names}]}}"
        if not any(arm["aa_of"] for arm in planned["environments"]):
            yield "  without the control (aa: false), no cost can be significant, so none will be explained"
    if planned["trace"] is not None and any(arms.values()):
        yield f"  {approval.traced_afterwards(planned['trace'])}"


def _resources(study: Study, arm: Arm) -> dict[str, Any]:
    """Return the limits of an environment in base units, by the keys of ``resources``; {} if there are none."""
    resources = study.file.resources if arm.resources is None else arm.resources
    limits = resources.model_dump(mode="json", exclude_none=True)
    return limits if "cpus" in limits else {key: each for key, each in limits.items() if key != "cpu_period"}


def limits_words(arm: PlannedEnvironment) -> str:
    """Return an environment's limits: ``0.5 CPUs, 1024 MiB, /dev/shm 64 MiB``, or ``none``."""
    limits = arm["resources"]
    pin = limits.get("pin")
    places = ", ".join(f"{role} {cpus}" for role, cpus in pin.items()) if isinstance(pin, dict) else pin
    words = [
        *([f"{limits['cpus']:g} CPU{'' if limits['cpus'] == 1 else 's'}"] if "cpus" in limits else []),
        *([f"{limits['memory'] >> 20} MiB"] if "memory" in limits else []),
        *([f"pinned: {places}"] if pin else []),
    ] or ["none"]
    words += [
        *([f"{SHARED} {arm['shm_size'] >> 20} MiB"] if arm["shm_size"] is not None else []),
        *(f"{name}={value}" for name, value in arm["sysctls"].items()),
    ]
    return ", ".join(words)


def hosts_of(study: Study) -> PlannedHosts:
    """Return the hosts with their options, the host of each role, and the roles inside of the environments."""
    roles = {role for cell in study.cells for role in registry.workloads()[cell.kind].roles(cell.options)}
    clients = {"client": list(study.client_hosts)} if "client" in roles else {}
    storage = {"storage": list(study.storage_hosts)} if study.storage_hosts else {}
    return {
        "hosts": {name: host.model_dump(exclude_none=True) for name, host in study.file.hosts.items()},
        "placement": {**clients, "server": [study.server_host], **storage},
        "inside": list(study.file.inside),
    }


def hosts_line(study: Study) -> str:
    """Return the hosts and placement as one line; empty if everything is on this machine."""
    hosts, layout = study.file.hosts, hosts_of(study)
    if all(host.traits.this_machine for host in hosts.values()):
        return ""
    places = ", ".join(
        f"{role} on {' and '.join(f'{name} ({hosts[name].description})' for name in names)}"
        for role, names in layout["placement"].items()
    )
    inside = " and ".join(layout["inside"])
    unknown = not all(host.traits.here and not host.traits.own_kernel for host in hosts.values())
    return f"hosts: {places}; inside the environments: {inside}" + (
        "; the run checks whether the hosts have everything" if unknown else ""
    )


_PRESENCE = {True: "present on", False: "missing on", None: "not checked on"}


def images_lines(images: Iterable[PlannedImage]) -> list[str]:
    """Return how images get to hosts: one line for all hosts that get them in the same way."""
    hosts: dict[tuple[str, str], dict[str, dict[str, bool | None]]] = {}
    for each in images:
        size = "not built yet" if each["bytes"] is None else f"{each['bytes'] / 1e6:.0f} MB"
        hosts.setdefault((f"{each['userland']} ({size})", each["way"]), {})[each["host"]] = each["on_nodes"]
    lines = []
    for (what, way), names in hosts.items():
        by_words: dict[str, list[str]] = {}
        for node, holds in {node: holds for each in names.values() for node, holds in each.items()}.items():
            by_words.setdefault(_PRESENCE[holds], []).append(node)
        presence = "".join(f"; {words} {', '.join(nodes)}" for words, nodes in by_words.items())
        lines.append(f"image: {what}, for {' and '.join(names)}: {way}{presence}")
    return lines


def time_line(document: PlanDocument) -> str:
    """Return the expected duration of a run, and the part that is not trials."""
    times = document["seconds"]
    whole, rest = clock_range(times["from"], times["to"]), clock(document["set_up_s"])
    line = f"time: {whole}, of which set-up and cleanup take {rest}"
    omits = document["set_up_omits_unapproved"]
    return f"{line}, without building root filesystems that you have not approved" if omits else line


def _print(document: PlanDocument, planned: PlannedRun, *, with_trials: bool) -> None:
    for part in _parts(document, planned.declared):
        out().print(part, markup=False)
    approval.tell(external_resources(planned.declared), out())
    notes = (f"note: {warning}" for warning in document["warnings"])
    for line in (*approval.secrets_lines(secrets_of(planned.study)), *notes):
        out().print(line, markup=False)
    if with_trials:
        out().print(_trial_table(document["trials"]), markup=False)


def _parts(document: PlanDocument, study: Study) -> Iterator[str | Text | Table]:
    """Yield the parts of the plan, up to the list of external resources."""
    yield Text.from_markup(f"[bold]{escape(document['study'])}[/bold]: {escape(document['question'])}\n")
    yield _environment_table(document)
    yield from (
        f"{arm['name']} is skipped: {arm['why']}; {arm['remedy']}"
        for arm in document["environments"]
        if arm["optional"] and not (arm["ready"] or arm["explains"])
    )
    yield from _explained_lines(document)
    if hosts := [line for line in (hosts_line(study), *planning.describe_locations(study)) if line]:
        yield "\n" + "\n".join(hosts)
    yield from _workload_lines(document)
    yield time_line(document)
    yield from images_lines(document["images"])
    yield f"idle CPUs: {document['cpu_idle']} (cpu_idle)"
    yield f"precision: {document['decides']['sentence']}"
    yield from (f"weighbridge run will refuse: {why}" for why in document["refusals"])


def _environment_table(document: PlanDocument) -> Table:
    limits = {arm["name"]: limits_words(arm) for arm in document["environments"]}
    differ = len({*limits.values()}) > 1
    table = Table("environment", "kind", *(["limits"] if differ else []), "ready", box=None, pad_edge=False)
    for arm in (each for each in document["environments"] if not each["explains"]):
        note = f" (control: {arm['aa_of']} measured again)" if arm["aa_of"] else ""
        note += " (baseline)" if arm["name"] == document["baseline"] else ""
        yes = "" if arm["caveat"] == NOT_CHECKED else "yes"
        good = ", ".join(text for text in (yes, arm["caveat"], arm["unverified"] and UNVERIFIED) if text)
        state = good if arm["ready"] else "skipped" if arm["optional"] else "no"
        table.add_row(arm["name"] + note, arm["kind"], *([limits[arm["name"]]] if differ else []), state)
    return table


def _workload_lines(document: PlanDocument) -> Iterator[str]:
    """Yield the workloads, the number of trials, and the workloads whose length a pilot round chooses."""
    workloads = document["workloads"]
    labels = (cell["label"] + " (no rate limit on the cables)" * (cell["link"] == "none") for cell in workloads)
    yield f"\nworkloads: {', '.join(labels)}"
    measured = {arm["name"] for arm in document["environments"] if arm["ready"] or not arm["optional"]}
    in_round = _in_round(document, measured)
    words = f"{plural(len(workloads), 'workload')} x {plural(len(measured), 'environment')}"
    words += f", {plural(in_round, 'trial')} per round" if in_round < len(workloads) * len(measured) else ""
    yield f"{_length(document, words, in_round)}, in random order (seed {document['seed']})"
    if short := dict.fromkeys(cell["label"].partition(" (")[0] for cell in workloads if cell["short"]):
        yield f"an uncounted pilot round sets the trial length of {', '.join(short)}"


def _length(planned: PlanDocument, each: str, in_round: int) -> str:
    """Return the number of rounds and trials of a run, whose rounds are described by ``each``."""
    fewest, most, target = planned["blocks"], planned["most_blocks"], planned["target"]
    if target is None:
        return f"{plural(fewest, 'round')} x {each} = {plural(fewest * in_round, 'trial')}"

    until = f"until every primary metric reaches ±{target * 100:g}%"
    if planned["within_s"] is not None:
        least = f"at least {plural(fewest, 'round')}"
        return f"{each}, {least}, {until} or {clock(planned['within_s'])} have passed"
    count = plural(most, "round") if fewest == most else f"{fewest} to {most} rounds"
    budget = f" (budget {clock(planned['budget_s'])})" if planned["budget_s"] is not None else ""
    trials = " to ".join(f"{rounds * in_round:,}" for rounds in sorted({fewest, most}))
    return f"{each}, {count}, {until}{budget}: {trials} trials"


def _in_round(planned: PlanDocument, measured: Collection[str]) -> int:
    """Return the trials per round. If clients cannot reach every environment, it has fewer than all combinations."""
    trials = sum(trial["environment"] in measured for trial in planned["trials"])
    return trials // max(1, planned["blocks"])


def _trial_table(trials: Iterable[PlannedTrial]) -> Any:
    table = Table("#", "round", "workload", "level", "environment", box=None, pad_edge=False)
    for number, trial in enumerate(trials, 1):
        level = level_label(trial["level"])
        table.add_row(str(number), str(trial["block"]), trial["workload"], level, trial["environment"])
    return table
