"""`weighbridge doctor`: check what this machine can measure."""

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from weighbridge import registry
from weighbridge.cli.commands.machine import DoctorOptions
from weighbridge.cli.declared import later
from weighbridge.cli.documents import DoctorDocument, ReadinessRow
from weighbridge.cli.output import out, print_json
from weighbridge.errors import Unavailable
from weighbridge.model.document import SuggestedStep
from weighbridge.model.environment import Environment
from weighbridge.model.plugin import Readiness
from weighbridge.report.screen import LINES
from weighbridge.runner import living, preflight
from weighbridge.runner.default_environments import DefaultEnvironments, default_environments

UNVERIFIED = "untested on real hardware"
_SECTIONS = ("machine", "environments", "storage", "hosts", "userlands", "workloads", "cluster")
_TITLES = {"userlands": "root filesystems"}
"""The headings of sections and groups that the screen shows by another name than the JSON."""
_GROUPS = (
    "machine",
    "engines",
    "sandboxes",
    "userlands",
    "load generators",
    "virtual machines",
    "storage",
    "network",
)
"""The groups, ordered by the help of their missing parts to a newcomer."""
_LABEL = 18
"""The width of the column with the names of the groups."""
_WEIGHED = {"a program": False, "a server": True}
LIMITED = "*"
"""The mark after a name that is ready with a limitation; a note explains the limitation."""
_CUT = " ... (--all)"


def doctor(options: DoctorOptions) -> None:
    """Print what this machine, or the cluster, can measure."""
    if options.noisy:
        living.require_alone(allow_concurrent=options.allow_concurrent)
        later("weighbridge.cli.noise:measure_noise")(as_json=options.as_json)
        return
    of_cluster = options.cluster or options.context or options.namespace
    sections = examine_cluster(options.context, options.namespace) if of_cluster else examine()
    if options.as_json:
        print_json(doctor_document(sections, of_cluster=bool(of_cluster)))
    elif of_cluster:
        _print_sections(sections, remedies_title="to do")
    if of_cluster and not sections["cluster"][0]["ready"]:  # the cluster does not answer
        raise typer.Exit(Unavailable.exit_code)
    if options.as_json or of_cluster:
        return
    for line in summary_lines(sections, out().width, whole=options.everything):
        out().print(line, markup=False)
    if options.everything:
        out().print()
        _print_sections(sections)


def doctor_document(sections: Mapping[str, Sequence[Mapping[str, Any]]], *, of_cluster: bool) -> DoctorDocument:
    """Return the document of ``--json``."""
    rows: dict[str, Any] = {
        section: tuple(ReadinessRow(**row) for row in listed) for section, listed in sections.items()
    }
    if of_cluster:
        return DoctorDocument(**rows)
    program, server = (tuple(default_environments("host", server=each).ready) for each in _WEIGHED.values())
    return DoctorDocument(**rows, program_in=program, server_in=server, next_steps=tuple(_installs(sections)))


def _installs(sections: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[SuggestedStep]:
    """Yield for each group the installation that adds most of its missing parts."""
    rows = [row for listed in sections.values() for row in listed if not row["ready"]]
    for group in _GROUPS:
        remedies = [(_shown_name(row), row["remedy"]) for row in rows if row["group"] == group]
        command, names = preflight.most_helpful(remedies)
        if preflight.is_installation(command):
            yield SuggestedStep(
                code="missing", reason=f"This adds {', '.join(names)}.", command=tuple(shlex.split(command))
            )


def _print_sections(sections: Mapping[str, Sequence[Mapping[str, Any]]], remedies_title: str = "to install") -> None:
    remedies: list[str] = []
    for section in _SECTIONS:
        _print(section, rows_of(sections.get(section, ()), remedies))
    unverified: dict[str, list[str]] = {}
    for row in (row for rows in sections.values() for row in rows if row["unverified"]):
        unverified.setdefault(row["unverified"], []).append(row["name"])
    _print(UNVERIFIED, [("", f"{'; '.join(names)}: {why}") for why, names in unverified.items()])
    _print(remedies_title, [(f"[{number}]", remedy) for number, remedy in enumerate(remedies, 1)])


def summary_lines(
    sections: Mapping[str, Sequence[Mapping[str, Any]]], width: int, *, whole: bool = False
) -> list[str]:
    """Return the summary: the default comparison with its reasons, and one or two lines per group.

    With ``whole``, return only the default comparison. Its reasons are left out if the summary has no room for them.
    """
    defaults = {label: default_environments("host", server=server) for label, server in _WEIGHED.items()}
    long, short = (
        ["weigh compares by default (--in changes this):"]
        + [
            line
            for label, each in defaults.items()
            for line in _cell(f"  {label}", _default_words(each, reasons=reasons), width, 99)
        ]
        for reasons in (True, False)
    )
    if whole:
        return long
    rows = [
        {**row, "group": "machine"} if section == "machine" else row
        for section in sections
        for row in sections[section]
    ]
    for first, most in (
        (long, (2, 2)),
        (short, (2, 2)),
        (long, (2, 1)),
        (short, (1, 2)),
        (short, (2, 1)),
        (short, (1, 1)),
    ):
        groups = [
            line
            for group in _GROUPS
            for line in _group_lines(group, [row for row in rows if row["group"] == group], width, most)
        ]
        notes = _note_lines(rows, " ".join(map(str.strip, groups)), width, most[1])
        lines = [*first, "ready and missing:", *groups, *notes, "details: weighbridge doctor --all"]
        if len(lines) <= LINES:
            break
    return lines


def _note_lines(rows: Sequence[Mapping[str, Any]], groups: str, width: int, most: int) -> list[str]:
    """Return a note for each limitation whose mark is shown in the ``groups``."""
    names: dict[str, list[str]] = {}
    for row in rows:
        name = _shown_name(row)
        if row["ready"] and _limits_mark(row) == LIMITED and f"{name}{LIMITED}" in groups:
            names.setdefault(row["caveat"] or UNVERIFIED, []).append(name)
    return [
        line
        for limit, same in names.items()
        for line in textwrap.wrap(
            f"{LIMITED} {', '.join(dict.fromkeys(same))}: {limit}", max(40, width), subsequent_indent="  ",
            max_lines=most, placeholder=_CUT, break_on_hyphens=False,
        )
    ]  # fmt: skip


def _shown_name(row: Mapping[str, Any]) -> str:
    """Return the name of a row for a comma-separated list."""
    return str(row["name"]).replace(", ", " ")


def _default_words(defaults: DefaultEnvironments, *, reasons: bool) -> str:
    """Return ``native against netns; not docker: no Docker engine is installed``, with or without the ``reasons``."""
    if not defaults.ready:
        return f"nothing yet. Install one of: {defaults.remedies}"
    with_ = " and ".join(
        f"{name} ({state.detail})" if state.detail and reasons else name for name, state in defaults.ready.items()
    )
    if not reasons:
        return f"native against {with_}" + (
            f"; not {', '.join(defaults.passed_over)}" if defaults.passed_over else ""
        )
    without = "; ".join(f"not {name}: {state.detail}" for name, state in defaults.passed_over.items())
    return f"native against {with_}" + (f"; {without}" if without else "")


def _group_lines(
    group: str, rows: Sequence[Mapping[str, Any]], width: int, most: tuple[int, int] = (2, 2)
) -> list[str]:
    """Return the ready and the missing plug-ins of a group, by name or counted, and one command that adds some.

    ``most`` is the maximum number of lines of each of the two parts.
    """
    names: dict[bool, list[str]] = {True: [], False: []}
    for row in rows:
        names[row["ready"]].append(_shown_name(row) + (_limits_mark(row) if row["ready"] else ""))
    for counted in ((), (False,), (False, True)):
        parts = [
            f"{len(names[state])} {word}" if state in counted else f"{word}: {', '.join(names[state])}"
            for word, state in (("ready", True), ("missing", False))
            if names[state]
        ]
        lines = _cell(f"  {_TITLES.get(group, group)}", "; ".join(parts), width, most[0])
        if not lines[-1].endswith(_CUT):
            break
    lacking = [(_shown_name(row), row["remedy"]) for row in rows if not row["ready"]]
    command, helped = preflight.most_helpful(lacking)
    if not command:
        return lines
    of_all = len(helped) == len(names[False])
    for which in (
        ("it" if len(helped) == 1 else "them",) if of_all else (", ".join(helped), f"{len(helped)} of {len(lacking)}")
    ):
        told = _cell("", f"to add {which}: {command}", width, most[1])
        if not told[-1].endswith(_CUT):
            return lines + told
    return lines  # part of a command is useless


def _limits_mark(row: Mapping[str, Any]) -> str:
    """Return the suffix of a name that is ready with a limitation: the limitation itself if it is short."""
    if row["caveat"] and len(row["caveat"]) <= len("emulated"):
        return f" ({row['caveat']})"
    return LIMITED if row["caveat"] or row["unverified"] else ""


def _cell(label: str, text: str, width: int, most: int) -> list[str]:
    """Return the lines of a labelled text, at most ``most``."""
    return textwrap.wrap(
        text, max(40, width), initial_indent=f"{label:{_LABEL}} ", subsequent_indent=" " * (_LABEL + 1),
        max_lines=most, placeholder=_CUT, break_on_hyphens=False,
    )  # fmt: skip


def rows_of(section: Sequence[Mapping[str, Any]], remedies: list[str]) -> list[tuple[str, str]]:
    """Return the rows (state, text) of a section: one row for all plug-ins with the same state for the same reason.

    A plug-in that is not ready refers to ``remedies`` by number. New remedies are added to that list.
    """
    names: dict[tuple[bool, str, str], list[str]] = {}
    for row in section:
        if row["remedy"] and row["remedy"] not in remedies:
            remedies.append(row["remedy"])
        why = ": ".join(text for text in (row["caveat"], row["detail"]) if text)
        names.setdefault((not row["ready"], why, row["remedy"]), []).append(row["name"])
    rows = []
    for (lacking, why, remedy), same in sorted(names.items(), key=lambda item: item[0][0]):
        between = "; " if any("," in name for name in same) else ", "
        line = between.join(same) + (f" - {why}" if why else "")
        number = f" [{remedies.index(remedy) + 1}]" if remedy else ""
        rows.append(("not ready" if lacking else "ready", line + number))
    return rows


def _print(title: str, rows: Sequence[tuple[str, str]]) -> None:
    if not rows:
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")  # no command is cut off
    for state, text in rows:
        table.add_row(Text(f"  {state}" if state else ""), Text(text))
    out().print(f"{_TITLES.get(title, title)}\n", end="", style="bold")
    out().print(table)
    out().print()


def examine() -> dict[str, Any]:
    """Return the readiness of every plug-in and of the machine itself, with the parts untested on real hardware."""
    environments, unverified = {}, {}
    groups: dict[tuple[str, str], str] = {}
    for kind, plugin in registry.environments().items():
        if kind in plugin.weighed_in():  # a name of --in; of a wrapper, only its presets are
            environments[kind] = _as_weighed(plugin, preflight.environment_readiness(plugin))
            unverified["environments", kind] = plugin.unverified()
            groups["environments", kind] = plugin.group
        for name, options in plugin.variants().items():
            environments[name] = preflight.ready(plugin, options)
            unverified["environments", name] = plugin.unverified(options)
            groups["environments", name] = "network" if "network" in options.model_fields_set else plugin.group
    for section, plugins in (
        ("storage", registry.storage()), ("hosts", registry.hosts()),
        ("userlands", registry.userlands()), ("workloads", registry.workloads()),
    ):  # fmt: skip
        groups |= {(section, kind): each.group for kind, each in plugins.items()}
    workloads = {kind: preflight.workload_readiness(plugin) for kind, plugin in registry.workloads().items()}
    storage = {kind: preflight.ready(plugin) for kind, plugin in registry.storage().items()}
    hosts = {kind: preflight.lacking_here(plugin) or plugin.ready() for kind, plugin in registry.hosts().items()}
    sections = {
        "environments": environments,
        "storage": storage,
        "hosts": hosts,
        "userlands": {kind: preflight.source_readiness(plugin) for kind, plugin in registry.userlands().items()},
        "workloads": workloads,
        "machine": preflight.checks(),
    }
    unverified |= {("hosts", kind): plugin.unverified() for kind, plugin in registry.hosts().items()}
    return _documents(sections, unverified, groups)


def examine_cluster(context: str, namespace: str) -> dict[str, Any]:
    """Return what the user can measure in a namespace of a cluster. "" stands for kubectl's current ones."""
    rows: dict[str, Readiness] = {}
    for kind, plugin in registry.required_of_clusters().items():
        lacking = preflight.lacking_here(plugin)
        rows |= plugin.survey(context, namespace) if lacking is None else {kind: lacking}
    return _documents({"cluster": rows}, {}, {})


def _documents(
    sections: Mapping[str, Mapping[str, Readiness]],
    unverified: Mapping[tuple[str, str], str],
    groups: Mapping[tuple[str, str], str],
) -> dict[str, Any]:
    return {
        section: [
            {"name": name, "ready": state.ready, "detail": state.detail, "remedy": state.remedy,
             "caveat": state.caveat, "unverified": unverified.get((section, name), ""),
             "group": groups.get((section, name), "")}
            for name, state in states.items()
        ]
        for section, states in sections.items()
    }  # fmt: skip


def _as_weighed(plugin: Environment, state: Readiness) -> Readiness:
    """Return whether ``weigh --in`` can use the environment whose name is the kind, if the kind has several names."""
    names = plugin.weighed_in()
    if not state.ready or len(names) == 1 or plugin.kind not in names:
        return state
    named = preflight.ready(plugin, plugin.options.model_validate(names[plugin.kind]))
    return state if named.ready else named
