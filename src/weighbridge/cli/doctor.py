"""`weighbridge doctor`."""

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from weighbridge.cli.noise import noise
from weighbridge.cli.output import JsonFlag, examples, out, print_json

UNVERIFIED = "unverified on real hardware"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge doctor", "weighbridge doctor --noise"))
    def doctor(
        noisy: bool = typer.Option(
            False, "--noise", help="Measure for a minute how far runs of the same program differ here, and why."
        ),
        as_json: bool = JsonFlag,
    ) -> None:
        """Say what this machine can measure, and what to install for the rest; or how noisy it is."""
        if noisy:
            noise(as_json=as_json)
            return
        found = examine()
        if as_json:
            print_json(found)
            return
        remedies: list[str] = []
        for section in ("machine", "environments", "storage", "hosts", "userlands", "workloads"):
            _print(section, rows_of(found[section], remedies))
        unverified = {row["name"]: row["unverified"] for rows in found.values() for row in rows if row["unverified"]}
        _print(UNVERIFIED, [("", f"{name}: {why}") for name, why in unverified.items()])
        _print("what makes the rest ready", [(f"[{number}]", told) for number, told in enumerate(remedies, 1)])


def rows_of(found: Sequence[Mapping[str, Any]], remedies: list[str]) -> list[tuple[str, str]]:
    """What is told of a section, a row for all that has the same state for the same reason: (state, text).

    What is not ready refers to ``remedies`` by number, to which those are added that are not in it yet.
    """
    names: dict[tuple[bool, str, str], list[str]] = {}
    for row in found:
        if row["remedy"] and row["remedy"] not in remedies:
            remedies.append(row["remedy"])
        why = ": ".join(text for text in (row["caveat"], row["detail"]) if text)
        names.setdefault((not row["ready"], why, row["remedy"]), []).append(row["name"])
    rows = []
    for (lacking, why, remedy), same in sorted(names.items(), key=lambda item: item[0][0]):
        between = "; " if any("," in name for name in same) else ", "
        told = between.join(same) + (f" - {why}" if why else "")
        number = f" [{remedies.index(remedy) + 1}]" if remedy else ""
        rows.append(("not ready" if lacking else "ready", told + number))
    return rows


def _print(title: str, rows: Sequence[tuple[str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    for state, told in rows:
        table.add_row(Text(f"  {state}" if state else "", no_wrap=True), Text(told))
    out().print(f"{title}\n", end="", style="bold")
    out().print(table)
    out().print()


def examine() -> dict[str, Any]:
    """Readiness of every plug-in, and what the machine itself must have; what is unverified on real hardware."""
    from weighbridge import registry
    from weighbridge.runner.preflight import (
        checks,
        environment_readiness,
        lacking_here,
        ready,
        source_readiness,
        workload_readiness,
    )

    environments, unverified = {}, {}
    for kind, plugin in registry.environments().items():
        environments[kind] = environment_readiness(plugin)
        unverified["environments", kind] = plugin.unverified()
        for name, options in plugin.variants().items():
            environments[name] = ready(plugin, options)
            unverified["environments", name] = plugin.unverified(options)
    workloads = {kind: workload_readiness(plugin) for kind, plugin in registry.workloads().items()}
    storage = {kind: ready(plugin) for kind, plugin in registry.storage().items()}
    hosts = {kind: lacking_here(plugin) or plugin.readiness() for kind, plugin in registry.hosts().items()}
    sections = {
        "environments": environments,
        "storage": storage,
        "hosts": hosts,
        "userlands": {kind: source_readiness(plugin) for kind, plugin in registry.userlands().items()},
        "workloads": workloads,
        "machine": checks(),
    }
    unverified |= {("hosts", kind): plugin.unverified() for kind, plugin in registry.hosts().items()}
    return {
        section: [
            {"name": name, "ready": state.ready, "detail": state.detail, "remedy": state.remedy,
             "caveat": state.caveat, "unverified": unverified.get((section, name), "")}
            for name, state in states.items()
        ]
        for section, states in sections.items()
    }  # fmt: skip
