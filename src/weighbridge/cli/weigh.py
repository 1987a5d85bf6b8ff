"""`weighbridge weigh`: a study made from a command line."""

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from weighbridge.cli.complete import complete_environments
from weighbridge.cli.help import DURATION, LIMITS, MEASURE, OUTPUT, WHAT, WHERE, Command
from weighbridge.cli.options import (
    AllowConcurrentOption,
    ContextOption,
    ExplainOption,
    NamespaceOption,
    QuickTestOption,
    TraceOption,
)
from weighbridge.cli.output import WRONG_COMMAND_LINE, err, examples, fail, given_variables, out, write_new
from weighbridge.model.facts import CpuIdle

if TYPE_CHECKING:
    from weighbridge.model.study import Study
    from weighbridge.runner.default_environments import DefaultEnvironments
    from weighbridge.runner.stopper import ShortTime
    from weighbridge.study.weighed import Earlier

_PARAMETER = r"[A-Za-z][A-Za-z0-9_]*"
_LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}"
_STUDY = "weigh"
"""The name of the study in messages."""
_LINE = re.compile(rf"^{_STUDY}:\d+: ", re.MULTILINE)
_OPTIONS: Mapping[str, str] = {"shm_size": "--shm-size", "json": "--metric", "regex": "--metric"} | {
    key: f"--{key}"
    for key in (
        "within", "target", "memory", "cpus", "trace", "adapter", "deadline", "setup", "prepare", "check", "cleanup",
    )
}  # fmt: skip
"""The option that gives the value of a study's key."""
_PACKAGES: Mapping[str, Any] = {"kind": "packages"}
"""The root filesystem for a cluster if the user names no image."""
_ENGINE_SHOWS = "a container engine would also show the cost of its bridge, NAT and seccomp filter"


class ProgramLast(Command):
    """A command whose options come before a program that has options of its own."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse the words. Refuse a long option of Weighbridge after the program unless -- precedes the program."""
        words = list(args)
        rest = super().parse_args(ctx, args)
        program = len(words) - len(ctx.params.get("command") or ())
        if words[program - 1 : program] != ["--"]:
            for option in (word.partition("=")[0] for word in words[program + 1 :]):
                if option in self.spellings:
                    fail(f"put {option} before the program, or -- before {words[program]}", WRONG_COMMAND_LINE)
        return rest


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        cls=ProgramLast,
        context_settings={"allow_interspersed_args": False},  # like env(1): words after the program belong to it
        epilog=examples(
            "weighbridge weigh -- python3 fib.py  # What to run",
            "weighbridge weigh --server 'redis-server --bind {listen} --port {port} --protected-mode no' "
            "-- redis-benchmark -h {address} -p {port} -n 20000 -t set -q  # What to run",
            "weighbridge weigh --in docker,gvisor -- ./my-benchmark  # Where",
            "weighbridge weigh --metric 'rps=json:$.summary.rps,higher,1/s' -- ./load  # What to measure",
            "weighbridge weigh --cpus 1 --memory 512MiB -- ./my-benchmark  # Limits",
            "weighbridge weigh --rounds 20 -- ./my-benchmark  # How long",
            "weighbridge weigh --save mine.yaml -- ./my-benchmark  # Output",
            "weighbridge weigh --parameter size=64,1k,64k --prepare sync -- ./pack {size}",
            "weighbridge weigh --compose compose.yaml --service shop -- oha -n 20000 http://{address}:{port}/",
            "weighbridge weigh --against ./old-benchmark --label before=glibc,after=musl -- ./my-benchmark",
            "weighbridge weigh --image shop:1.5 --against shop:1.4 -- --self-test",
            "weighbridge weigh --explain --in published -- ./my-benchmark",
            "weighbridge weigh --cluster -- sysbench cpu --time=0 --events=20000 run",
        ),
    )
    def weigh(
        command: list[str] = typer.Argument(
            [],
            metavar="COMMAND",
            show_default=False,
            help="The program and its arguments, after --.",
            rich_help_panel=WHAT,
        ),
        server: str | None = typer.Option(
            None,
            "--server",
            metavar="COMMAND",
            help="The server to isolate. The program becomes its client and runs outside.",
            rich_help_panel=WHAT,
        ),
        ready: int | None = typer.Option(
            None,
            "--ready",
            metavar="PORT",
            min=1,
            max=65534,
            help="The server's fixed port. The server is ready when it listens there.",
            rich_help_panel=WHAT,
        ),
        image: str | None = typer.Option(
            None,
            "--image",
            metavar="IMAGE",
            help="Run the program from this image of your engine, or from a docker save file. The native run uses a "
            "chroot of the same files. With --server: the server's image.",
            rich_help_panel=WHAT,
        ),
        compose: Path | None = typer.Option(
            None,
            "--compose",
            metavar="FILE",
            help="A Compose file. One service is measured as the server; the others run next to it.",
            rich_help_panel=WHAT,
        ),
        service: str | None = typer.Option(
            None, "--service", metavar="NAME", help="With --compose: the service to measure.", rich_help_panel=WHAT
        ),
        without: list[str] = typer.Option(
            [],
            "--without",
            metavar="KEY,...",
            help="With --compose: unsupported keys of the file to ignore.",
            rich_help_panel=WHAT,
        ),
        saved: list[str] = typer.Option(
            [],
            "--saved",
            metavar="IMAGE=FILE",
            help="With --compose: read this image from a docker save file.",
            rich_help_panel=WHAT,
        ),
        against: str | None = typer.Option(
            None,
            "--against",
            metavar="COMMAND|IMAGE",
            help="Compare with an older version in the same environment instead of with native: another command, "
            "another server (with --server) or another image (with --image).",
            rich_help_panel=WHAT,
        ),
        label: str | None = typer.Option(
            None,
            "--label",
            metavar="before=A,after=B",
            help="With --against: names of the two versions.",
            rich_help_panel=WHAT,
        ),
        parameters: list[str] = typer.Option(
            [],
            "--parameter",
            "-L",
            metavar="NAME=A,B,...",
            help="Measure once per value; {NAME} in the command stands for it.",
            rich_help_panel=WHAT,
        ),
        setup: str | None = typer.Option(
            None,
            "--setup",
            "-s",
            metavar="COMMAND",
            help="Run this once per environment, before its first run.",
            rich_help_panel=WHAT,
        ),
        prepare: str | None = typer.Option(
            None,
            "--prepare",
            "-p",
            metavar="COMMAND",
            help="Run this before each run. It is not measured.",
            rich_help_panel=WHAT,
        ),
        check: str | None = typer.Option(
            None,
            "--check",
            metavar="COMMAND",
            help="Run this after each run. If it fails, the run fails.",
            rich_help_panel=WHAT,
        ),
        cleanup: str | None = typer.Option(
            None,
            "--cleanup",
            "-c",
            metavar="COMMAND",
            help="Run this once per environment, after its last run.",
            rich_help_panel=WHAT,
        ),
        warm_up: bool = typer.Option(
            False,
            "--warmup",
            "-w",
            help="Run the program once before each run, without counting it. This doubles the time.",
            rich_help_panel=WHAT,
        ),
        shell: bool = typer.Option(
            False, "--shell", help="Pass the program to sh as one line.", rich_help_panel=WHAT
        ),
        env: list[str] = typer.Option(
            [],
            "--env",
            "-e",
            metavar="NAME[=VALUE]",
            help="Pass an environment variable to the program. NAME alone is read from your environment; other users "
            "can see NAME=VALUE. The value is not stored, so continuing the run needs it again. "
            "PATH, HOME, locale and TZ are always passed, and they are stored.",
            rich_help_panel=WHAT,
        ),
        inside: list[str] = typer.Option(
            [],
            "--in",
            metavar="NAME,...",
            autocompletion=complete_environments,
            help="Environments to measure. Run weighbridge doctor for the names and the defaults here.",
            rich_help_panel=WHERE,
        ),
        cluster: bool = typer.Option(
            False,
            "--cluster",
            help="Run in pods of the Kubernetes cluster of kubectl's current context.",
            rich_help_panel=WHERE,
        ),
        context: str = ContextOption,
        namespace: str = NamespaceOption,
        images: str = typer.Option(
            "",
            "--images",
            metavar="WAY",
            help="With --cluster: how nodes get images: kind, minikube, k3d, containerd, pull, REGISTRY/REPOSITORY "
            "(your engine pushes there), or a 'COMMAND' that loads an image into the node $WEIGHBRIDGE_NODE. "
            "Default: depends on the context's name.",
            rich_help_panel=WHERE,
        ),
        metrics: list[str] = typer.Option(
            [],
            "--metric",
            metavar="NAME=json:PATH,higher|lower,UNIT",
            help="A number that the program prints, found by JSONPath or by regex:PATTERN with one group. The first "
            "is the primary metric.",
            rich_help_panel=MEASURE,
        ),
        adapter: str | None = typer.Option(
            None,
            "--adapter",
            metavar="FORMAT",
            help="The format of the program's output: hyperfine, oha, wrk, vegeta, k6, go-bench, jmh, ...",
            rich_help_panel=MEASURE,
        ),
        explain: bool = ExplainOption,
        trace: str | None = TraceOption,
        deadline: str | None = typer.Option(
            None, "--deadline", metavar="TIME", help="Time limit of one run. Default: 5min.", rich_help_panel=LIMITS
        ),
        cpus: float | None = typer.Option(
            None,
            "--cpus",
            metavar="NUMBER",
            help="CPU limit in every environment, for example 1.5.",
            rich_help_panel=LIMITS,
        ),
        memory: str | None = typer.Option(
            None,
            "--memory",
            metavar="SIZE",
            help="Memory limit in every environment, for example 512MiB.",
            rich_help_panel=LIMITS,
        ),
        shm_size: str | None = typer.Option(
            None,
            "--shm-size",
            metavar="SIZE",
            help="Size of /dev/shm in every environment, for example 1GiB.",
            rich_help_panel=LIMITS,
        ),
        cpu_idle: CpuIdle = typer.Option(
            "auto",
            "--cpu-idle",
            metavar="auto|halt|poll",
            help="Let idle CPUs halt, or keep them awake (poll). auto polls on a virtual machine if you are root.",
            rich_help_panel=LIMITS,
        ),
        allow_concurrent: bool = AllowConcurrentOption,
        target: str | None = typer.Option(
            None,
            "--target",
            metavar="PERCENT",
            help="Stop when every interval is at most this far from its estimate. Default: 2%.",
            rich_help_panel=DURATION,
        ),
        within: str | None = typer.Option(
            None,
            "--within",
            metavar="TIME",
            help="Time limit of the measurement. Default: 2min, or longer if a first verdict needs it.",
            rich_help_panel=DURATION,
        ),
        rounds: int | None = typer.Option(
            None,
            "--rounds",
            metavar="N",
            min=1,
            max=1000,
            help="Run exactly this many rounds instead of stopping at the target.",
            rich_help_panel=DURATION,
        ),
        quick_test: bool = QuickTestOption,
        directory: Path | None = typer.Option(
            None, "--out", metavar="DIR", help="The run directory. Default: a new one.", rich_help_panel=OUTPUT
        ),
        save: Path | None = typer.Option(
            None, "--save", metavar="FILE", help="Write a study file and run nothing.", rich_help_panel=OUTPUT
        ),
        export_json: Path | None = typer.Option(
            None,
            "--export-json",
            metavar="FILE",
            help="Also write the JSON of 'weighbridge report --json'.",
            rich_help_panel=OUTPUT,
        ),
        yes: bool = typer.Option(False, "--yes", "-y", help="Accepted as by run; weigh never asks.", hidden=True),
    ) -> None:
        """Measure how much isolation slows down your own program.

        The program runs natively and isolated, in random order, from the same files (of this machine or an image).
        Anything that it writes to the current folder and /tmp stays in memory and is discarded. Results are kept in
        ~/.local/share/weighbridge/runs.
        """
        from weighbridge.runner.living import require_alone
        from weighbridge.study.weighed import Weighed, study_text

        _require_one_length(rounds, target, within)
        beside = {"setup": setup, "prepare": prepare, "check": check, "cleanup": cleanup}
        further = {"adapter": adapter, "deadline": deadline, "warm_up": warm_up or None}
        composed = ComposeFlags(compose, service, without, saved, image, ready)
        composed.require_whole(server=server is not None, shell=shell)
        environments = [name for names in inside for name in names.split(",") if name]
        flags = ClusterFlags(cluster, context, namespace, images)
        in_cluster = flags.applied_to(environments, {"compose": compose, "env": env})
        apart = compose is not None or (image is not None and server is not None)
        _require_command(command, server or service, None if apart else image)
        where: dict[str, Any] = {"server": server, "port": ready}
        if compose is not None and against is not None:
            fail(
                "--against does not work with --compose: save two studies (--save), run both, and compare the runs",
                WRONG_COMMAND_LINE,
            )
        if compose is not None:
            where = _weighed_service(composed)
        else:
            packages = in_cluster is not None and image is None
            where["userland"] = _PACKAGES if packages else _userland(image, () if apart else env)
            if against is not None and image is not None:
                where["earlier"] = _earlier_image(against, command, server)
            elif against is not None:
                where["earlier"] = _earlier_program(against, server=server is not None, shell=shell)
            entry_point = _entry_point(where["userland"])
            if server is None:
                command = [*entry_point, *command]
            else:
                where["server"] = _server_behind(entry_point, server)
        _require_command(command, server or service)
        where |= _labels(label, against)
        _require_text([*command, server, against, *beside.values()], parameters, server=server is not None)
        if server is not None and ready is None:
            _require_port(server, against if image is None else None)
        of_no_image = [command, *(() if apart else (server, *beside.values()))] if image is None or apart else []
        if in_cluster is not None:
            commands = [*of_no_image, against if image is None else None]
            where |= in_cluster.where(commands, has_server=server is not None, ask=save is None)
            environments = environments or in_cluster.usual(one=server is None or against is not None)
        elif not shell and save is None:
            _require_programs(of_no_image, _variables(env))
        if not environments and against is None:
            environments = [*_default_inside(where, save=save is not None)]
        weighed = Weighed(
            command=command,
            **where,
            inside=environments,
            client_userland=None if not apart else _this_machine(env) if in_cluster is None else _PACKAGES,
            shell=shell,
            parameters=dict(_parameter(each) for each in parameters),
            metrics=dict(_metric(each) for each in metrics),
            beside={name: text for name, text in beside.items() if text is not None},
            further={name: value for name, value in further.items() if value is not None},
            resources={name: value for name, value in (("cpus", cpus), ("memory", memory)) if value is not None},
            shm_size=shm_size,
            target=target or "2%",
            within=within or "2min",
            blocks=rounds,
            explain=explain,
            trace=trace or "",
            cpu_idle=cpu_idle,
        )
        if save is None:
            require_alone(beside_others=allow_concurrent)
        _weigh(
            _checked_study(
                partial(study_text, weighed),
                beside | further | {"within": within, "target": target, "memory": memory, "cpus": cpus}
                | {"trace": trace, "shm_size": shm_size, "json": metrics or None, "regex": metrics or None},
            ),
            directory, save, export_json, _short_time(within, quick_test=quick_test), [*given_variables(env)],
            quick_test=quick_test,
        )  # fmt: skip


def _short_time(within: str | None, *, quick_test: bool) -> "ShortTime":
    return "extend" if within is None else "keep" if quick_test else "refuse"


def _weigh(
    study: "Study",
    directory: Path | None,
    save: Path | None,
    export: Path | None,
    short_time: "ShortTime",
    env: Sequence[str],
    *,
    quick_test: bool,
) -> None:
    from weighbridge.model.secret import env_options, variables_of
    from weighbridge.model.stored_study import secrets_of

    if save is not None:
        write_new(save, study.text)
        out().print(f"{save} written. Next: weighbridge plan {save}", markup=False, soft_wrap=True)
        if variables := variables_of(secrets_of(study)):
            sentence = f"The file contains no values of --env. Run it with {env_options(variables)}."
            out().print(sentence, markup=False, soft_wrap=True)
        return
    _run(study, directory, export, short_time, env, quick_test=quick_test)


def _run(
    study: "Study",
    directory: Path | None,
    export: Path | None,
    short_time: "ShortTime",
    env: Sequence[str],
    *,
    quick_test: bool,
) -> None:
    """Run a study as `weighbridge run` does, and export its JSON if the user asked for it."""
    from weighbridge.cli.approval import announce
    from weighbridge.cli.progress import show
    from weighbridge.cli.run import new_directory, report_run
    from weighbridge.cli.runs import continuable
    from weighbridge.report.export.json import report_json
    from weighbridge.report.text.environments import names_of_study, use_display_names
    from weighbridge.report.text.next_step import continuing
    from weighbridge.runner.run import run_study
    from weighbridge.runner.signals import interruptible
    from weighbridge.store.run import RunStore

    if directory is not None:
        _require_own_run(directory, study)
    directory = directory or _runs() / new_directory(study).name
    announce(study, directory, quick_test=quick_test, timed=False)
    with (
        use_display_names(names_of_study(study)),
        interruptible(),
        show() as progress,
        continuable(directory, *continuing("run", str(directory), yes=True, variables=env)),
    ):

        def after(store: RunStore) -> None:
            analysis = report_run(store, progress)
            if export is not None and analysis is not None:
                import json

                export.write_text(json.dumps(report_json(store, analysis), indent=2, ensure_ascii=False))
                err().print(f"JSON: {export}", markup=False)

        run_study(study, directory, progress, after, short_time=short_time, timed=False)


def _require_own_run(directory: Path, study: "Study") -> None:
    """Raise RunDirectoryError if a directory holds the run of another command; remove such a run without trials."""
    from weighbridge.cli.runs import holds_a_run
    from weighbridge.errors import RunDirectoryError
    from weighbridge.runner.run import study_of
    from weighbridge.store.run import RunStore

    if not holds_a_run(directory):
        return
    with RunStore(directory) as store:
        frozen, has_trials = study_of(store), bool(store.finished())
    if frozen.text == study.text:
        return
    if has_trials:
        raise RunDirectoryError(
            f"{directory} already holds the run of another command ({frozen.file.study}): choose a new --out, or "
            f"continue that run with 'weighbridge run --out {directory}'"
        )
    with RunStore(directory, writable=True) as store:
        store.discard()


def _userland(image: str | None, env: Sequence[str]) -> Mapping[str, Any]:
    """Return the root filesystem of the program: this machine, an image of the engine, or a saved image."""
    from weighbridge.study.compose_key import image_userland

    if image is None:
        return _this_machine(env)
    if env:
        fail("--env does not work with an image, which sets its own variables: remove it", WRONG_COMMAND_LINE)
    return image_userland(image)


def _entry_point(userland: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the entry point of an image, which precedes the program's words as in `docker run`."""
    from pydantic import ValidationError

    from weighbridge import registry

    source = registry.userlands()[userland["kind"]]
    try:
        options = source.options.model_validate(userland)
    except ValidationError:
        fail(f"{userland['image']!r} is neither a file nor a valid image name", WRONG_COMMAND_LINE)
    return source.entry_point(options)


def _this_machine(env: Sequence[str]) -> Mapping[str, Any]:
    """Return this machine's root filesystem, with programs started in the current folder unless that is /."""
    from weighbridge.model.site import NO_START_FOLDERS

    try:
        folder = Path.cwd()
    except FileNotFoundError:
        fail("the current folder has been removed: cd to another one", WRONG_COMMAND_LINE)
    if str(folder) in NO_START_FOLDERS:
        fail(f"programs cannot start in {folder}, which every environment replaces: cd ~ first", WRONG_COMMAND_LINE)
    return {"kind": "host", **({} if folder == Path("/") else {"folder": str(folder)}), "env": _variables(env)}


def _runs() -> Path:
    """Return the folder for runs. It is outside of the measured folder, which would otherwise grow during the run."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    return Path(base) / "weighbridge/runs"


def _variables(env: Sequence[str]) -> dict[str, str]:
    """Return the variables that every program gets, and references to the values of ``--env``."""
    from weighbridge.model.secret import PASSED_ON, SecretName, reference, secret_name
    from weighbridge.secret_values import keep_as

    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    for name, value in given_variables(env).items():
        if name in PASSED_ON:
            variables[name] = value
        else:  # a variable of a Compose file can have this name
            variables[name] = reference(keep_as(SecretName(name), value, secret_name("env", name)))
    return variables


def _parameter(option: str) -> tuple[str, list[str]]:
    name, equals, values = option.partition("=")
    if not (re.fullmatch(_PARAMETER, name) and equals and values):
        fail(f"--parameter {shlex.quote(option)}: write NAME=A,B,...", WRONG_COMMAND_LINE)
    return name, values.split(",")


def _metric(option: str) -> tuple[str, Mapping[str, Any]]:
    """Parse ``rps=json:$.summary.rps,higher,1/s``. The path can contain commas, so only the last two separate."""
    name, _, rest = option.partition("=")
    how, _, words = rest.partition(":")
    parts = words.rsplit(",", 2)
    problem = ""
    if how not in ("json", "regex") or len(parts) != 3:
        problem = "write NAME=json:PATH,higher|lower,UNIT or NAME=regex:PATTERN,higher|lower,UNIT"
    elif not re.fullmatch(r"[a-z][a-z0-9_]{0,59}", name):
        problem = f"the name must start with a lower-case letter and have only a-z, 0-9 and _, not {name!r}"
    elif parts[1] not in ("higher", "lower"):
        problem = f"the direction must be higher or lower, not {parts[1]!r}"
    elif not re.fullmatch(r"\S{1,20}", parts[2]):
        problem = f"the unit must have 1 to 20 characters and no space, not {parts[2]!r}"
    if problem:
        fail(f"--metric {shlex.quote(option)}: {problem}", WRONG_COMMAND_LINE)
    return name, {how: parts[0], "better": parts[1], "unit": parts[2]}


def _require_command(command: Sequence[str], server: str | None, image: str | None = None) -> None:
    """Exit with an example if the program is missing. An ``image`` can have a program of its own."""
    if command or image is not None:
        return
    if server is None:
        fail("name the program to measure, for example: weighbridge weigh -- ./my-benchmark", WRONG_COMMAND_LINE)
    fail(
        "name the server's client, for example: weighbridge weigh ... -- curl -s http://{address}:{port}/",
        WRONG_COMMAND_LINE,
    )


def _labels(option: str | None, against: str | None) -> dict[str, tuple[str, str]]:
    """Parse ``before=glibc,after=musl``, the names of the two compared programs."""
    if option is None:
        return {}
    if against is None:
        fail("--label names the two versions of --against, which is missing", WRONG_COMMAND_LINE)
    pairs = dict(each.split("=", 1) for each in option.split(",") if "=" in each)
    before, after = pairs.get("before", ""), pairs.get("after", "")
    if (
        {*pairs} != {"before", "after"}
        or before == after
        or not all(re.fullmatch(_LABEL, each) for each in (before, after))
    ):
        fail(
            f"--label {shlex.quote(option)}: write before=A,after=B with two different names of letters and digits",
            WRONG_COMMAND_LINE,
        )
    return {"labels": (before, after)}


def _require_one_length(rounds: int | None, target: str | None, within: str | None) -> None:
    if rounds is not None and (target is not None or within is not None):
        fail("--rounds excludes --target and --within", WRONG_COMMAND_LINE)


def _require_spelling(text: str, parameters: Iterable[str], *, server: bool) -> None:
    """Exit with a hint if a word in braces is almost a placeholder that is missing. Other braces are a program's."""
    names = {*parameters, *(("address", "port", "data_port", "listen") if server else ())}
    missing = sorted(name for name in names if f"{{{name}}}" not in text)
    for word in re.findall(rf"(?<!\$){{({_PARAMETER})}}", text):
        nearest = get_close_matches(word, missing, n=1, cutoff=0.75)
        if nearest and word not in names:
            fail(f"unknown placeholder {{{word}}}. Did you mean {{{nearest[0]}}}?", WRONG_COMMAND_LINE)


def _require_port(*servers: str | None) -> None:
    """Exit with a message if the command line of a server does not contain its port."""
    for server in servers:
        if server is not None and not any(place in server for place in ("{port}", "{data_port}")):
            message = "the port is missing. Write {port} in the command, or give a fixed port with --ready PORT"
            fail(f"--server {shlex.quote(server)}: {message}", WRONG_COMMAND_LINE)


def _server_behind(entry_point: Sequence[str], server: str) -> str:
    """Return the command line of a server in an image, with the image's entry point first."""
    return " ".join([shlex.join(entry_point), server]).strip()


def _earlier_image(image: str, command: Sequence[str], server: str | None) -> "Earlier":
    """Return the same command in another image, after the entry point of that image."""
    from weighbridge.study.weighed import Earlier

    where = _userland(image, ())
    entry_point = _entry_point(where)
    if server is not None:
        return Earlier(where, server=_server_behind(entry_point, server))
    return Earlier(where, command=[*entry_point, *command])


def _earlier_program(program: str, *, server: bool, shell: bool) -> "Earlier":
    """Return another program of this machine, which replaces the server if there is one, else the program."""
    from weighbridge.study.weighed import Earlier

    if server:
        return Earlier(server=program)
    if shell:
        return Earlier(command=[program])
    try:
        words = shlex.split(program)
    except ValueError as error:
        fail(f"--against: {error}", WRONG_COMMAND_LINE)
    if not words:
        fail("--against: name a program", WRONG_COMMAND_LINE)
    return Earlier(command=words)


@dataclass(frozen=True, slots=True)
class ClusterFlags:
    """The options of a command line that concern a cluster."""

    asked: bool
    context: str
    namespace: str
    images: str

    def applied_to(self, environments: Sequence[str], without: Mapping[str, Any]) -> "ClusterFlags | None":
        """Return these flags if one of them, or a name of ``--in``, selects a cluster; otherwise None.

        Exits with a message if the user gives an option that does not apply to clusters (one of ``without``).
        """
        from weighbridge import registry

        kinds = registry.of_clusters().values()
        there = {name for kind in kinds for name in registry.weighed_in(kind.options.traits)}
        only_there = there - {*registry.weighed_in()}
        asked = self.asked or self.context or self.namespace or self.images or {*environments} & only_there
        if not asked:
            return None
        if given := [option for option, value in without.items() if value]:
            fail(f"--{given[0]} does not apply to a cluster: remove it", WRONG_COMMAND_LINE)
        return self

    def usual(self, *, one: bool) -> list[str]:
        """Return the default environments; with ``one``, leave out the further network paths to a server."""
        from weighbridge.study.weighed import USUAL_IN_CLUSTER, USUAL_OF_SERVERS_IN_CLUSTER

        return [*(USUAL_IN_CLUSTER if one else USUAL_OF_SERVERS_IN_CLUSTER)]

    def where(self, commands: Sequence[Sequence[str] | str | None], *, has_server: bool, ask: bool) -> dict[str, Any]:
        """Return the cluster's part of a `Weighed`, for commands that are not in an image.

        Raises Unavailable, unless ``ask`` is False: then nothing contacts the cluster.
        """
        return {"packages": _packages_of(commands), "hosts": self._hosts(apart=has_server, ask=ask)}

    def _hosts(self, *, apart: bool, ask: bool) -> Sequence[Mapping[str, Any]]:
        from weighbridge import registry
        from weighbridge.errors import Unavailable
        from weighbridge.runner.preflight import lacking_here

        for plugin in registry.of_clusters().values():
            if ask and (lacking := lacking_here(plugin)) is not None:
                raise Unavailable(f"{lacking.detail}: {lacking.remedy}" if lacking.remedy else lacking.detail)
            try:
                return plugin.weighed_on(self.context, self.namespace, self.images, apart=apart, ask=ask)
            except ValueError as error:
                fail(f"--images: {error}", WRONG_COMMAND_LINE)
        return ()


def _packages_of(commands: Sequence[Sequence[str] | str | None]) -> list[str]:
    """Return the Debian packages of the programs of commands. Exit with a message if a program has no package."""
    from weighbridge.runner.userlands import package_of

    packages: dict[str, None] = {}
    for command in commands:
        try:
            words = shlex.split(command) if isinstance(command, str) else [*(command or ())]
        except ValueError:
            continue  # the check of the study reports it
        if words and "{" not in words[0]:
            package = package_of(words[0])
            if not package:
                fail(
                    f"Weighbridge knows no Debian package with {words[0]}: name an image that has it with --image",
                    WRONG_COMMAND_LINE,
                )
            packages[package] = None
    return [*packages]


@dataclass(frozen=True, slots=True)
class ComposeFlags:
    """The options of a command line that concern a Compose file."""

    file: Path | None = None
    service: str | None = None
    without: Sequence[str] = ()
    saved: Sequence[str] = ()
    image: str | None = None
    """An image that replaces the service's image: a name or a file."""
    port: int | None = None

    def require_whole(self, *, server: bool, shell: bool) -> None:
        """Exit with a message if an option is missing or does not apply."""
        if self.file is None:
            beside = {"--service": self.service, "--without": self.without, "--saved": self.saved}
            if options := [option for option, value in beside.items() if value]:
                fail(f"{options[0]} needs a Compose file: add --compose FILE", WRONG_COMMAND_LINE)
        elif not self.file.is_file():
            fail(f"--compose: {self.file} does not exist or is not a file", WRONG_COMMAND_LINE)
        elif self.service is None:
            fail("--compose needs the service to measure: add --service NAME", WRONG_COMMAND_LINE)
        elif server or shell:
            which = "--server" if server else "--shell"
            fail(f"{which} does not work with --compose (the service is the server): remove it", WRONG_COMMAND_LINE)


def _weighed_service(flags: ComposeFlags) -> dict[str, Any]:
    """Return the service's part of a `Weighed`, and print on standard error what is left out.

    Raises StudyError, Unavailable, UserlandError.
    """
    from weighbridge.errors import StudyError
    from weighbridge.model.companion import ComposedService
    from weighbridge.runner.compose_file import normalised
    from weighbridge.study.compose import Unhonoured
    from weighbridge.study.compose_key import service_of

    composed = ComposedService(
        file=str(flags.file),
        service=flags.service or "",
        without=tuple(key for keys in flags.without for key in keys.split(",") if key),
        saved=dict(_saved(each) for each in flags.saved),
        image=flags.image,
        port=flags.port,
    )
    try:
        weighed = service_of(composed, normalised)
    except Unhonoured as error:
        raise StudyError(f"{error.listed}--without {','.join(error.shortly)}") from None
    if weighed.remark:
        err().print(weighed.remark, markup=False, soft_wrap=True)
    if weighed.port is None:
        fail(f"compose: {flags.service} does not have exactly one port: add --ready PORT", WRONG_COMMAND_LINE)
    return {
        "server": weighed.server,
        "server_env": weighed.environment,
        "port": weighed.port,
        "userland": weighed.userland,
        "companions": weighed.companions,
        "remark": weighed.remark,
        "settings": weighed.settings,
    }


def _saved(option: str) -> tuple[str, str]:
    image, equals, file = option.rpartition("=")
    if not (image and equals and file):
        fail(f"--saved {option}: write IMAGE=FILE", WRONG_COMMAND_LINE)
    return image, file


def _default_inside(where: Mapping[str, Any], *, save: bool) -> Sequence[str]:
    """Return the first choice of environments that is ready here, and print a note if it is not the first of all.

    If none is ready, a study that is only saved gets the first choice; otherwise raise Unavailable.
    """
    from weighbridge.errors import Unavailable
    from weighbridge.runner.default_environments import default_environments
    from weighbridge.study.weighed import USUAL, USUAL_OF_SERVERS

    server = where.get("server") is not None
    defaults = default_environments(where["userland"]["kind"], server=server)
    if not defaults.ready and not save:
        what = "a server" if server else "a program"
        raise Unavailable(f"nothing here can isolate {what}. Install one of: {defaults.remedies}")
    if defaults.ready and defaults.passed_over:
        _print_choice(defaults)
    return [*defaults.ready] or (USUAL_OF_SERVERS if server else USUAL)[0]


def _print_choice(defaults: "DefaultEnvironments") -> None:
    from weighbridge.study.weighed import WITHOUT_ENGINE

    why = "; ".join(f"{name}: {state.detail}" for name, state in defaults.passed_over.items())
    shows = f"; {_ENGINE_SHOWS}" if {*defaults.ready} <= WITHOUT_ENGINE else ""
    err().print(f"note: using {', '.join(defaults.ready)} ({why}){shows}", markup=False, soft_wrap=True)


def _checked_study(make_text: Callable[[], str], options: Mapping[str, object]) -> "Study":
    """Return the checked study. Messages name an option instead of a line, because the study is not in a file.

    ``options`` are the values on the command line by the key of the study; None if an option is not used.
    """
    from weighbridge.errors import StudyError
    from weighbridge.study.loader import check
    from weighbridge.study.source import parse

    try:
        return check(parse(make_text(), _STUDY)).model_copy(update={"lines": {}})
    except StudyError as error:
        problems = [line.partition(": ") for line in _LINE.sub("", str(error)).splitlines()]
        named = (
            f"{key if options.get(key) is None else _OPTIONS.get(key, key)}{colon}{text}"
            for key, colon, text in problems
        )
        fail("\n".join(dict.fromkeys(named)), WRONG_COMMAND_LINE)  # several environments can have the same problem


def _require_text(words: Sequence[str | None], parameters: Sequence[str], *, server: bool) -> None:
    """Exit with a message if a word is not UTF-8, or has a misspelt placeholder of a server or of ``--parameter``.

    Runs store the words, and reports show them.
    """
    for word in (*words, *parameters):
        try:
            (word or "").encode()
        except UnicodeEncodeError:
            fail(f"{word!a} is not UTF-8: write it in UTF-8", WRONG_COMMAND_LINE)
    names = [each.partition("=")[0] for each in parameters]
    _require_spelling(" ".join(filter(None, words)), names, server=server)


def _require_programs(commands: Sequence[Sequence[str] | str | None], env: Mapping[str, Any]) -> None:
    """Exit with a message if this machine does not have a command's program, unless a placeholder names it."""
    for command in commands:
        try:
            words = shlex.split(command) if isinstance(command, str) else command
        except ValueError:
            continue  # the check of the study reports it
        if not words or "{" in words[0]:
            continue
        name = words[0]
        if "/" in name and not Path(name).exists():
            fail(f"{name}: no such program. Check the path, or add --shell", WRONG_COMMAND_LINE)
        if "/" in name and not os.access(name, os.X_OK):
            fail(
                f"{name} is not executable: run chmod +x {name}, or put its interpreter before it", WRONG_COMMAND_LINE
            )
        if "/" not in name and shutil.which(name, path=str(env.get("PATH", os.defpath))) is None:
            hint = f". Try ./{name}" if Path(name).exists() else ". A shell builtin needs --shell"
            fail(f"{name}: not found in PATH{hint}", WRONG_COMMAND_LINE)
