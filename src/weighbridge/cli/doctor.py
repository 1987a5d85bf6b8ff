"""`weighbridge doctor`."""

from typing import Any

import typer

from weighbridge.cli.output import JsonFlag, examples, out, print_json

UNVERIFIED = "unverified on real hardware"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge doctor"))
    def doctor(as_json: bool = JsonFlag) -> None:
        """Say what this machine can measure, and what to install for the rest."""
        found = examine()
        if as_json:
            print_json(found)
            return
        from rich.table import Table

        for section in ("environments", "storage", "hosts", "userlands", "workloads", "machine"):
            table = Table(section, "", "", box=None, pad_edge=False, show_header=True)
            for row in found[section]:
                state = "ready" if row["ready"] else "not ready"
                detail = ": ".join(text for text in (row["caveat"], row["detail"]) if text)
                told = (detail, row["remedy"], row["unverified"] and f"{UNVERIFIED}: {row['unverified']}")
                table.add_row(row["name"], state, "; ".join(text for text in told if text))
            out().print(table)
            out().print()


def examine() -> dict[str, Any]:
    """Readiness of every plug-in, and what the machine itself must have; what is unverified on real hardware."""
    from weighbridge import registry
    from weighbridge.runner.preflight import checks, environment_readiness, source_readiness, workload_readiness
    from weighbridge.runner.readiness import missing_programs, ready

    environments, unverified = {}, {}
    for kind, plugin in registry.environments().items():
        environments[kind] = environment_readiness(plugin)
        unverified["environments", kind] = plugin.unverified()
        for name, options in plugin.variants().items():
            environments[name] = ready(plugin, options)
            unverified["environments", name] = plugin.unverified(options)
    workloads = {kind: workload_readiness(plugin) for kind, plugin in registry.workloads().items()}
    storage = {kind: ready(plugin) for kind, plugin in registry.storage().items()}
    hosts = {kind: missing_programs(plugin) or plugin.readiness() for kind, plugin in registry.hosts().items()}
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
