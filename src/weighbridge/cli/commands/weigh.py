"""The options and examples of weigh."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.cli.declared import Declared, argument, flag, option
from weighbridge.cli.help import DURATION, LIMITS, MEASURE, OUTPUT, WHAT, WHERE, Command
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.options import (
    allow_concurrent_flag,
    complete_environments,
    context_option,
    explain_flag,
    json_flag,
    namespace_option,
    placebo_flag,
    progress_option,
    quick_test_flag,
    timing_flag,
    trace_option,
)
from weighbridge.model.choices import CpuIdle, ProgressFormat


class ProgramLast(Command):
    """A command whose options come before a program that has options of its own."""

    allow_interspersed_args = False  # like env(1): words after the program belong to it

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words. Refuse a long option of Weighbridge after the program unless -- precedes the program."""
        words = list(args)
        rest: list[str] = super().parse_args(ctx, args)
        program = len(words) - len(ctx.params.get("command") or ())
        if words[program - 1 : program] != ["--"]:
            for option in (word.partition("=")[0] for word in words[program + 1 :]):
                if option in self.spellings:
                    fail(f"put {option} before the program, or -- before {words[program]}", WRONG_COMMAND_LINE)
        return rest


@dataclass(frozen=True, slots=True)
class What:
    """The program to measure."""

    command: list[str] = argument(
        "COMMAND", "The program and its arguments, after --.", WHAT, default=[], show_default=False
    )
    server: str | None = option(
        "--server COMMAND", "The server to isolate. The program becomes its client and runs outside.", WHAT
    )
    ready: int | None = option(
        "--ready PORT", "The server's fixed port. The server is ready when it listens there.", WHAT, min=1, max=65534
    )
    image: str | None = option(
        "--image IMAGE",
        "Run the program from this image of your engine, or from a docker save file. The native run uses a "
        "chroot of the same files. With --server: the server's image.",
        WHAT,
    )
    compose: Path | None = option(
        "--compose FILE", "A Compose file. One service is measured as the server; the others run next to it.", WHAT
    )
    service: str | None = option("--service NAME", "With --compose: the service to measure.", WHAT)
    without: list[str] = option(
        "--without KEY,...", "With --compose: unsupported keys of the file to ignore.", WHAT, default=[]
    )
    saved: list[str] = option(
        "--saved IMAGE=FILE", "With --compose: read this image from a docker save file.", WHAT, default=[]
    )
    against: str | None = option(
        "--against COMMAND|IMAGE",
        "Compare with an older version in the same environment instead of with native: another command, "
        "another server (with --server) or another image (with --image).",
        WHAT,
    )
    label: str | None = option("--label before=A,after=B", "With --against: names of the two versions.", WHAT)
    parameters: list[str] = option(
        "--parameter -L NAME=A,B,...",
        "Measure once per value; {NAME} in the command stands for it.",
        WHAT,
        default=[],
    )
    setup: str | None = option("--setup -s COMMAND", "Run this once per environment, before its first run.", WHAT)
    prepare: str | None = option("--prepare -p COMMAND", "Run this before each run. It is not measured.", WHAT)
    check: str | None = option("--check COMMAND", "Run this after each run. If it fails, the run fails.", WHAT)
    cleanup: str | None = option("--cleanup -c COMMAND", "Run this once per environment, after its last run.", WHAT)
    warm_up: bool = flag(
        "--warmup -w", "Run the program once before each run, without counting it. This doubles the time.", WHAT
    )
    shell: bool = flag("--shell", "Pass the program to sh as one line.", WHAT)
    env: list[str] = option(
        "--env -e NAME[=VALUE]",
        "Pass an environment variable to the program. NAME alone is read from your environment; other users "
        "can see NAME=VALUE. The value is not stored, so continuing the run needs it again. "
        "PATH, HOME, locale and TZ are always passed, and they are stored.",
        WHAT,
        default=[],
    )

    commands: list[str] = option(
        "--command NAME=COMMAND",
        "Measure several programs in the same rounds, each under a name, instead of the one after --. Repeatable.",
        WHAT,
        default=[],
    )


@dataclass(frozen=True, slots=True)
class VersionOptions:
    """Two versions of the repository in the current folder."""

    base: str | None = option(
        "--base REF",
        "Compare two versions of this git repository: this branch, tag or commit with --head. Both are checked out "
        "into folders of their own, and measured natively and in each environment of --in.",
        WHAT,
    )
    head: str | None = option("--head REF", "With --base: the new version. Default: HEAD.", WHAT)
    build: str | None = option(
        "--build COMMAND", "With --base: build each version with this command first. No shell interprets it.", WHAT
    )
    keep_trees: bool = flag(
        "--keep-trees",
        "With --base: keep both folders until weighbridge clean, so that the run can be continued.",
        OUTPUT,
    )


@dataclass(frozen=True, slots=True)
class Where:
    """The environments."""

    inside: list[str] = option(
        "--in NAME,...",
        "Environments to measure. Run weighbridge doctor for the names and the defaults here.",
        WHERE,
        default=[],
        autocompletion=complete_environments,
    )
    wrap: list[str] = option(
        "--wrap COMMAND",
        "Also measure the program started by this command, for example 'firejail --quiet --'. {data}, {folder} and "
        "{launcher} stand for paths.",
        WHERE,
        default=[],
    )
    cluster: bool = flag("--cluster", "Run in pods of the Kubernetes cluster of kubectl's current context.", WHERE)
    context: str = context_option()
    namespace: str = namespace_option()
    images: str = option(
        "--images WAY",
        "With --cluster: how nodes get images: kind, minikube, k3d, containerd, pull, REGISTRY/REPOSITORY "
        "(your engine pushes there), or a 'COMMAND' that loads an image into the node $WEIGHBRIDGE_NODE. "
        "Default: depends on the context's name.",
        WHERE,
        default="",
    )


@dataclass(frozen=True, slots=True)
class MeasurementOptions:
    """The metrics, and the search for a cause."""

    metrics: list[str] = option(
        "--metric NAME=json:PATH,higher|lower,UNIT",
        "A number that the program prints, found by JSONPath or by regex:PATTERN with one group. The first "
        "is the primary metric.",
        MEASURE,
        default=[],
    )
    adapter: str | None = option(
        "--adapter FORMAT",
        "The format of the program's output: hyperfine, oha, wrk, vegeta, k6, go-bench, jmh, ...",
        MEASURE,
    )
    explain: bool = explain_flag()
    placebo: bool = placebo_flag()
    trace: str | None = trace_option()


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """The limits of the program, and of other programs' load."""

    deadline: str | None = option("--deadline TIME", "Time limit of one run. Default: 5min.", LIMITS)
    cpus: float | None = option("--cpus NUMBER", "CPU limit in every environment, for example 1.5.", LIMITS)
    memory: str | None = option("--memory SIZE", "Memory limit in every environment, for example 512MiB.", LIMITS)
    shm_size: str | None = option(
        "--shm-size SIZE", "Size of /dev/shm in every environment, for example 1GiB.", LIMITS
    )
    cpu_idle: CpuIdle = option(
        "--cpu-idle auto|halt|poll",
        "Let idle CPUs halt, or keep them awake (poll). auto polls on a virtual machine if you are root.",
        LIMITS,
        default="auto",
    )
    allow_concurrent: bool = allow_concurrent_flag()


@dataclass(frozen=True, slots=True)
class LengthOptions:
    """How long to measure."""

    target: str | None = option(
        "--target PERCENT", "Stop when every interval is at most this far from its estimate. Default: 2%.", DURATION
    )
    within: str | None = option(
        "--within TIME",
        "Time limit of the measurement. Default: 2min, or longer if a first verdict needs it.",
        DURATION,
    )
    rounds: int | None = option(
        "--rounds N", "Run exactly this many rounds instead of stopping at the target.", DURATION, min=1, max=1000
    )
    quick_test: bool = quick_test_flag()


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """The files of the results."""

    directory: Path | None = option("--out DIR", "The run directory. Default: a new one.", OUTPUT)
    save: Path | None = option("--save FILE", "Write a study file and run nothing.", OUTPUT)
    markdown: Path | None = option(
        "--markdown FILE",
        "Append the verdict as Markdown, for a comment on a pull request; - prints only that.",
        OUTPUT,
    )
    export_json: Path | None = option(
        "--export-json FILE", "Also write the JSON of 'weighbridge report --json'.", OUTPUT
    )
    as_json: bool = json_flag()
    progress: ProgressFormat = progress_option()
    timing: bool = timing_flag()
    yes: bool = flag("--yes -y", "Accepted as by run; weigh never asks.", hidden=True)


@dataclass(frozen=True, slots=True)
class WeighOptions:
    """Measure how much isolation slows down your own program.

    The program runs natively and isolated, in random order, from the same files (of this machine or an image).
    Anything that it writes to the current folder and /tmp stays in memory and is discarded. Results are kept in
    ~/.local/share/weighbridge/runs.
    """

    what: What
    versions: VersionOptions
    where: Where
    measurement: MeasurementOptions
    limits: LimitOptions
    length: LengthOptions
    output: OutputOptions


WEIGH = Declared(
    "weighbridge.cli.weigh:weigh",
    WeighOptions,
    (
        "weighbridge weigh -- python3 fib.py  # What to run",
        "weighbridge weigh --server 'redis-server --bind {listen} --port {port} --protected-mode no' "
        "-- redis-benchmark -h {address} -p {port} -n 20000 -t set -q  # What to run",
        "weighbridge weigh --in docker,gvisor -- ./my-benchmark  # Where",
        "weighbridge weigh --in landrun,srt,bubblewrap --wrap 'firejail --quiet --' -- ./my-benchmark  # Where",
        "weighbridge weigh --metric 'rps=json:$.summary.rps,higher,1/s' -- ./load  # What to measure",
        "weighbridge weigh --cpus 1 --memory 512MiB -- ./my-benchmark  # Limits",
        "weighbridge weigh --rounds 20 -- ./my-benchmark  # How long",
        "weighbridge weigh --save mine.yaml -- ./my-benchmark  # Output",
        "weighbridge weigh --parameter size=64,1k,64k --prepare sync -- ./pack {size}",
        "weighbridge weigh --compose compose.yaml --service shop -- oha -n 20000 http://{address}:{port}/",
        "weighbridge weigh --against ./old-benchmark --label before=glibc,after=musl -- ./my-benchmark",
        "weighbridge weigh --base main --build make -- ./my-benchmark",
        "weighbridge weigh --base main --command sort='./bench sort' --command find='./bench find'",
        "weighbridge weigh --image shop:1.5 --against shop:1.4 -- --self-test",
        "weighbridge weigh --explain --in published -- ./my-benchmark",
        "weighbridge weigh --cluster -- sysbench cpu --time=0 --events=20000 run",
    ),
    documents=("report", "files"),
    cls=ProgramLast,
)
