"""The options that several commands share."""

from typing import Any

import typer

from weighbridge.cli.help import DURATION, LIMITS, MEASURE, OUTPUT, WHAT, WHERE
from weighbridge.cli.output import given_variables

EXPLAIN = "explain=true"
"""The value that ``--explain`` sets in a study."""


def _offer(env: list[str]) -> list[str]:
    from weighbridge.secret_values import offer

    given = given_variables(env)
    for name, value in given.items():
        offer(name, value)
    return [*given]


JsonFlag = typer.Option(
    False, "--json", help="Print JSON to standard output, and nothing else.", rich_help_panel=OUTPUT
)
ProfileOption = typer.Option(
    None,
    "--profile",
    metavar="NAME",
    help="Use this profile of the study. Default: the study itself.",
    rich_help_panel=WHAT,
)
SetOption = typer.Option(
    [],
    "--set",
    metavar="KEY=VALUE",
    help="Set one value of the study, for example hosts.a.node=worker-1. Repeatable.",
    rich_help_panel=WHAT,
)


def _env_option(panel: str) -> Any:
    return typer.Option(
        [],
        "--env",
        "-e",
        metavar="NAME[=VALUE]",
        callback=_offer,
        help="Pass a secret to the study. NAME alone is read from your environment; other users can see NAME=VALUE. "
        "Repeatable.",
        rich_help_panel=panel,
    )


EnvOption: list[str] = _env_option(WHAT)
EnvToExtendOption: list[str] = _env_option(DURATION)
ExplainOption: bool = typer.Option(
    False,
    "--explain",
    help="Also find the cause: measure again with one mechanism at a time switched off (seccomp, NAT, limits, ...).",
    rich_help_panel=MEASURE,
)
TraceOption: str | None = typer.Option(
    None,
    "--trace",
    metavar="perf|bpftrace",
    help="After the measurement, record one extra run with perf (functions) or bpftrace (kernel events). It does not "
    "count.",
    rich_help_panel=MEASURE,
)
RoundsOption: int | None = typer.Option(
    None,
    "--rounds",
    metavar="N",
    min=1,
    max=1000,
    help="Run this many rounds instead of the study's.",
    rich_help_panel=DURATION,
)
QuickTestOption: bool = typer.Option(
    False,
    "--quick-test",
    envvar=["WEIGHBRIDGE_QUICK_TEST", "WEIGHBRIDGE_REHEARSAL"],
    show_envvar=False,
    help="Allow fewer rounds than a verdict needs.",
    rich_help_panel=DURATION,
)
AllowConcurrentOption: bool = typer.Option(
    False,
    "--allow-concurrent",
    envvar=["WEIGHBRIDGE_ALLOW_CONCURRENT", "WEIGHBRIDGE_BESIDE_OTHERS"],
    show_envvar=False,
    help="Measure even though another run is active (both reports say so).",
    rich_help_panel=LIMITS,
)
YesOption: bool = typer.Option(False, "--yes", "-y", help="Start without asking.")
ContextOption: str = typer.Option(
    "",
    "--context",
    metavar="NAME",
    help="With --cluster: a context of the kubeconfig other than the current one.",
    rich_help_panel=WHERE,
)
NamespaceOption: str = typer.Option(
    "",
    "--namespace",
    metavar="NAME",
    help="With --cluster: a namespace other than the context's.",
    rich_help_panel=WHERE,
)
