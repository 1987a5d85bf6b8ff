"""`weighbridge doctor`: what this machine can measure; with `--noise`, how noisy it is."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import typer

from weighbridge.cli.output import BesideOthersOption, JsonFlag, examples, out, print_json

if TYPE_CHECKING:
    from weighbridge.analysis.noise import MachineNoise
    from weighbridge.model.plugin import Readiness

UNVERIFIED = "never tested on real hardware"
NOISE_STUDY = "noise"
OFTEN_PER_S = 100.0
"""Interrupts that are told: at 5 us each, one in 2000 of a CPU's time."""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge doctor", "weighbridge doctor --noise", "weighbridge doctor --cluster"))
    def doctor(
        noisy: bool = typer.Option(
            False, "--noise", help="Measure this machine's noise for a minute and find its causes."
        ),
        cluster: bool = typer.Option(
            False, "--cluster", help="Ask the Kubernetes cluster of kubectl's own context what can be measured there."
        ),
        context: str = typer.Option("", "--context", help="With --cluster: another context of the kubeconfig."),
        beside_others: bool = BesideOthersOption,
        as_json: bool = JsonFlag,
    ) -> None:
        """Show what this machine (--cluster: a cluster) can measure and what is missing, or (--noise) its noise."""
        if noisy:
            from weighbridge.runner.living import require_alone

            require_alone(beside_others=beside_others)
            measure_noise(as_json=as_json)
            return
        sections = examine_cluster(context) if cluster or context else examine()
        if as_json:
            print_json(sections)
            return
        remedies: list[str] = []
        for section in ("machine", "environments", "storage", "hosts", "userlands", "workloads", "cluster"):
            _print(section, rows_of(sections.get(section, ()), remedies))
        unverified = {
            row["name"]: row["unverified"] for rows in sections.values() for row in rows if row["unverified"]
        }
        _print(UNVERIFIED, [("", f"{name}: {why}") for name, why in unverified.items()])
        _print("to install", [(f"[{number}]", remedy) for number, remedy in enumerate(remedies, 1)])


def rows_of(section: Sequence[Mapping[str, Any]], remedies: list[str]) -> list[tuple[str, str]]:
    """The rows of a section, (state, text): one row for all plug-ins with the same state for the same reason.

    What is not ready refers to ``remedies`` by number, to which those are added that are not in it yet.
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
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    for state, text in rows:
        table.add_row(Text(f"  {state}" if state else "", no_wrap=True), Text(text))
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
    return _documents(sections, unverified)


def examine_cluster(context: str) -> dict[str, Any]:
    """What the cluster of a context lets this user measure; "": of kubectl's own."""
    from weighbridge import registry
    from weighbridge.runner.preflight import lacking_here

    rows: dict[str, Readiness] = {}
    for kind, plugin in registry.hosts().items():
        if plugin.options.traits.managed:
            lacking = lacking_here(plugin)
            rows |= plugin.survey(context) if lacking is None else {kind: lacking}
    return _documents({"cluster": rows}, {})


def _documents(
    sections: Mapping[str, Mapping[str, "Readiness"]], unverified: Mapping[tuple[str, str], str]
) -> dict[str, Any]:
    return {
        section: [
            {"name": name, "ready": state.ready, "detail": state.detail, "remedy": state.remedy,
             "caveat": state.caveat, "unverified": unverified.get((section, name), "")}
            for name, state in states.items()
        ]
        for section, states in sections.items()
    }  # fmt: skip


def measure_noise(*, as_json: bool) -> None:
    """Measure how noisy this machine is, and print it. Raises what a run raises."""
    from weighbridge.analysis.noise import machine_noise
    from weighbridge.cli.progress import show
    from weighbridge.runner.known_noise import counted_interrupts, keep, run_folder
    from weighbridge.runner.run import require_ready, run_study
    from weighbridge.runner.signals import interruptible
    from weighbridge.runner.userlands import require_userlands
    from weighbridge.store.run import RunStore
    from weighbridge.study.loader import load

    study = load(NOISE_STUDY)
    require_ready(study)
    require_userlands(study)
    with run_folder() as folder:
        with interruptible(), counted_interrupts(OFTEN_PER_S) as often, show() as progress:
            run_study(study, folder / "run", progress, lambda store: None)
        with RunStore(folder / "run") as store:
            noise = replace(machine_noise(store), interrupts=tuple(often))
    document = {**noise_document(noise), "made": time.strftime("%Y-%m-%d %H:%M:%S %z")}
    keep(document)
    if as_json:
        print_json(document)
    else:
        _print_noise(noise)


def noise_document(noise: "MachineNoise") -> dict[str, Any]:
    """What ``--json`` prints: fractions and seconds."""
    from weighbridge.analysis.noise import TARGETS

    return {
        "version": 1,
        "noise": [
            {
                "workload": row.workload, "kind": row.kind, "variation": row.variation, "pairs": row.pairs,
                "trial_s": row.trial_s,
                "to": [
                    {"half_width": each, "blocks": row.blocks(each), "seconds": row.seconds(each)} for each in TARGETS
                ],
            }
            for row in noise.rows
        ],
        "disturbed": [
            {"code": each.flag.code, "where": each.flag.where, "trials": each.count, "of": each.trials}
            for each in noise.disturbed
        ],
        "interrupts": [asdict(each) for each in noise.interrupts],
    }  # fmt: skip


def _print_noise(noise: "MachineNoise") -> None:
    from rich.table import Table

    from weighbridge.analysis.noise import TARGETS
    from weighbridge.report.text.formatting import plain
    from weighbridge.report.text.noise import cause_lines
    from weighbridge.runner.estimate import clock

    table = Table("what", "between runs", *(f"to ±{100 * each:g} %" for each in TARGETS), box=None, pad_edge=False)
    for row in noise.rows:
        times = (clock(row.seconds(each)) for each in TARGETS)
        table.add_row(f"{row.workload} ({row.kind})", f"{plain(100 * row.variation, 2)} %", *times)
    out().print(table)
    out().print(
        "\nbetween runs: standard deviation of the ratio of two successive runs of the same program. "
        "Times are for one comparison of two native environments with this noise.\n",
        markup=False,
    )
    for line in cause_lines(noise):
        out().print(line, markup=False)
    out().print("saved for 'weighbridge plan'", markup=False)
