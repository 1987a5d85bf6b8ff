"""The options that several commands share, and the completion of words in a shell."""

from functools import partial

from weighbridge.cli.declared import deferred, flag, later, option
from weighbridge.cli.help import DURATION, LIMITS, MEASURE, OUTPUT, WHAT, WHERE
from weighbridge.cli.variables import offered

EXPLAIN = "explain=true"
"""The value that ``--explain`` sets in a study."""


def complete_study(incomplete: str) -> list[str]:
    """Return the bundled studies that begin with a word. For other words, the shell completes file names."""
    studies: list[str] = later("weighbridge.cli.complete:complete_study")(incomplete)
    return studies


def complete_environments(incomplete: str) -> list[str]:
    """Return the ways to continue the comma-separated list of names after `weigh --in`."""
    names: list[str] = later("weighbridge.cli.complete:complete_environments")(incomplete)
    return names


_env = partial(
    option,
    "--env -e NAME[=VALUE]",
    "Pass a secret to the study. NAME alone is read from your environment; other users can see NAME=VALUE. "
    "Repeatable.",
    default=[],
    callback=offered,
)
json_flag = partial(flag, "--json", "Print JSON to standard output, and nothing else.", OUTPUT)
progress_option = partial(
    option,
    "--progress auto|json",
    "json: write one line of JSON per event to standard error, and nothing else there.",
    OUTPUT,
    default="auto",
)
profile_option = partial(option, "--profile NAME", "Use this profile of the study. Default: the study itself.", WHAT)
set_option = partial(
    option,
    "--set KEY=VALUE",
    "Set one value of the study, for example hosts.a.node=worker-1. Repeatable.",
    WHAT,
    default=[],
)
env_option = partial(_env, WHAT)
env_option_to_extend = partial(_env, DURATION)
explain_flag = partial(
    flag,
    "--explain",
    "Also find the cause: measure again with one mechanism at a time switched off (seccomp, NAT, limits, ...).",
    MEASURE,
)
placebo_flag = partial(
    flag,
    "--placebo",
    "Also measure the explained environment once more with nothing switched: its true cost is zero.",
    MEASURE,
)
trace_option = partial(
    option,
    "--trace perf|bpftrace",
    "After the measurement, record one extra run with perf (functions) or bpftrace (kernel events). It does not "
    "count.",
    MEASURE,
)
rounds_option = partial(
    option, "--rounds N", "Run this many rounds instead of the study's.", DURATION, min=1, max=1000
)
quick_test_flag = partial(
    flag,
    "--quick-test",
    "Allow fewer rounds than a verdict needs.",
    DURATION,
    envvar=["WEIGHBRIDGE_QUICK_TEST", "WEIGHBRIDGE_REHEARSAL"],
    show_envvar=False,
)
timing_flag = partial(
    flag, "--timing", "After the verdict, print on standard error how long each part of the run took.", OUTPUT
)
allow_concurrent_flag = partial(
    flag,
    "--allow-concurrent",
    "Measure even though another run is active (both reports say so).",
    LIMITS,
    envvar=["WEIGHBRIDGE_ALLOW_CONCURRENT", "WEIGHBRIDGE_BESIDE_OTHERS"],
    show_envvar=False,
)
yes_flag = partial(flag, "--yes -y", "Start without asking.")
context_option = partial(
    option,
    "--context NAME",
    "With --cluster: a context of the kubeconfig other than the current one.",
    WHERE,
    default="",
)
namespace_option = partial(
    option, "--namespace NAME", "With --cluster: a namespace other than the context's.", WHERE, default=""
)
watching_options = partial(deferred, "weighbridge.cli.feature:watching")
