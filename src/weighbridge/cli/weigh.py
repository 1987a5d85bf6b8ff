"""`weighbridge weigh`: a study made of a command line."""

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from weighbridge.cli.complete import complete_environments
from weighbridge.cli.output import (
    WRONG_COMMAND_LINE,
    BesideOthersOption,
    ExplainOption,
    RehearsalOption,
    TraceOption,
    err,
    examples,
    fail,
    given_variables,
    out,
    write_new,
)
from weighbridge.model.facts import CpuIdle

if TYPE_CHECKING:
    from weighbridge.model.study import Study
    from weighbridge.runner.default_environments import DefaultEnvironments
    from weighbridge.runner.session import ShortTime
    from weighbridge.study.weighed import Earlier, Weighed

_PARAMETER = r"[A-Za-z][A-Za-z0-9_]*"
_LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}"
_STUDY = "weigh"
"""What messages about the study that is made call it."""
_LINE = re.compile(rf"^{_STUDY}:\d+: ", re.MULTILINE)
_PACKAGES: Mapping[str, Any] = {"kind": "packages"}
"""Where programs come from for a cluster that no image has."""
_ENGINE_SHOWS = "a container engine would also show the cost of its bridge, NAT and seccomp filter"


class ProgramLast(TyperCommand):
    """A command whose options stand before a program with its own: one behind it is refused without --."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse the words; one of our long options among the program's ends the command, unless -- is before it."""
        words = list(args)
        rest = super().parse_args(ctx, args)
        program = len(words) - len(ctx.params.get("command") or ())
        options = {option for each in self.params for option in each.opts if option.startswith("--")}
        if words[program - 1 : program] != ["--"]:
            for option in (word.partition("=")[0] for word in words[program + 1 :]):
                if option in options:
                    fail(f"put {option} before the program, or -- before {words[program]}", WRONG_COMMAND_LINE)
        return rest


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        cls=ProgramLast,
        context_settings={"allow_interspersed_args": False},  # as of env(1): what follows the program is its own
        epilog=examples(
            "weighbridge weigh -- python3 fib.py",
            "weighbridge weigh --in docker,gvisor -- ./my-benchmark",
            "weighbridge weigh --parameter size=64,1k,64k --prepare sync -- ./pack {size}",
            "weighbridge weigh --server 'redis-server --bind {listen} --port {port} --protected-mode no' "
            "-- redis-benchmark -h {address} -p {port} -n 20000 -t set -q",
            "weighbridge weigh --metric 'rps=json:$.summary.rps,higher,1/s' -- ./load",
            "weighbridge weigh --compose compose.yaml --service shop -- oha -n 20000 http://{address}:{port}/",
            "weighbridge weigh --against ./old-benchmark --label before=glibc,after=musl -- ./my-benchmark",
            "weighbridge weigh --image shop:1.5 --against shop:1.4 -- --self-test",
            "weighbridge weigh --explain --server 'redis-server --bind {listen} --port {port} --protected-mode no' "
            "--in published -- redis-benchmark -h {address} -p {port} -n 20000 -t set -q",
            "weighbridge weigh --cluster -- sysbench cpu --time=0 --events=20000 run",
            "weighbridge weigh --save mine.yaml -- ./my-benchmark",
        ),
    )
    def weigh(
        command: list[str] = typer.Argument(
            [], metavar="COMMAND", show_default=False, help="The program and its arguments, after --."
        ),
        inside: list[str] = typer.Option(
            [],
            "--in",
            metavar="NAME,...",
            autocompletion=complete_environments,
            help="Environments to measure: any kind that doctor lists; Docker's host, none, bridge, published or "
            "gvisor; podman-rootless. Default: docker, else podman-rootless, netns or bubblewrap; with --server: "
            "netns and bridge if available, else podman-published or bubblewrap; with --against: native, or bridge "
            "for a server or an image. In a cluster: pod, service, nodeport, policy; the baseline is host.",
        ),
        cluster: bool = typer.Option(
            False, "--cluster", help="Run in pods of the Kubernetes cluster of kubectl's own context."
        ),
        context: str = typer.Option("", "--context", help="With --cluster: another context of the kubeconfig."),
        namespace: str = typer.Option("", "--namespace", help="With --cluster: another namespace."),
        images: str = typer.Option(
            "",
            "--images",
            metavar="WAY",
            help="With --cluster: how nodes get images: kind, minikube, k3d, containerd, REGISTRY/REPOSITORY (pushed "
            "by your engine), pull, or a 'COMMAND' that reads one for the node $WEIGHBRIDGE_NODE. Default: by the "
            "context's name.",
        ),
        server: str | None = typer.Option(
            None, "--server", metavar="COMMAND", help="The server to isolate; the program is its client, outside."
        ),
        ready: int | None = typer.Option(
            None,
            "--ready",
            metavar="PORT",
            min=1,
            max=65534,
            help="The server's fixed port; it is ready once it listens there.",
        ),
        compose: Path | None = typer.Option(
            None, "--compose", help="A Compose file; one service is the server, the others run beside it."
        ),
        service: str | None = typer.Option(None, "--service", help="The Compose service to weigh."),
        without: list[str] = typer.Option(
            [], "--without", metavar="KEY,...", help="Unsupported keys of the Compose file to ignore."
        ),
        saved: list[str] = typer.Option(
            [], "--saved", metavar="IMAGE=FILE", help="An image of the Compose file, from a docker save file."
        ),
        image: str | None = typer.Option(
            None,
            "--image",
            help="Run it from this image, from your engine or a docker save file; natively in a chroot of its files. "
            "With --server: the server's image; the client is this machine's.",
        ),
        against: str | None = typer.Option(
            None,
            "--against",
            metavar="COMMAND|IMAGE",
            help="Compare with an older version in the same environment, not with native: a command (with --server: "
            "a server), or with --image another image.",
        ),
        label: str | None = typer.Option(
            None, "--label", metavar="before=A,after=B", help="With --against: names of the two versions."
        ),
        parameters: list[str] = typer.Option(
            [], "--parameter", "-L", metavar="NAME=A,B,...", help="Values for {NAME}, each measured."
        ),
        metrics: list[str] = typer.Option(
            [],
            "--metric",
            metavar="NAME=json:PATH,higher|lower,UNIT",
            help="A number it prints, by JSONPath or by regex:PATTERN with one group. The first is the headline.",
        ),
        adapter: str | None = typer.Option(
            None, "--adapter", help="Its output format: hyperfine, oha, wrk, vegeta, k6, go-bench, jmh, ..."
        ),
        prepare: str | None = typer.Option(
            None, "--prepare", "-p", help="Command to run before each run, unmeasured."
        ),
        setup: str | None = typer.Option(
            None, "--setup", "-s", help="Command to run once per environment, before the first run."
        ),
        cleanup: str | None = typer.Option(
            None, "--cleanup", "-c", help="Command to run once per environment, after the last run."
        ),
        check: str | None = typer.Option(
            None, "--check", help="Command to run after each run; if it fails, the run fails."
        ),
        warm_up: bool = typer.Option(
            False, "--warmup", "-w", help="Run the program once, uncounted, before each run."
        ),
        shell: bool = typer.Option(False, "--shell", help="Pass the program to sh as one line."),
        env: list[str] = typer.Option(
            [],
            "--env",
            "-e",
            metavar="NAME[=VALUE]",
            help="An environment variable for it. Its value is not stored: continuing the run needs it again. NAME "
            "takes it from your environment; NAME=VALUE shows it to other users. PATH, HOME, locale and TZ are "
            "always passed, and stored.",
        ),
        deadline: str | None = typer.Option(None, "--deadline", help="Time limit of one run. Default: 5min."),
        cpus: float | None = typer.Option(None, "--cpus", help="CPU limit, in every environment."),
        memory: str | None = typer.Option(None, "--memory", help="Memory limit, in every environment: 512MiB."),
        shm_size: str | None = typer.Option(
            None, "--shm-size", metavar="SIZE", help="Size of /dev/shm, in every environment: 1GiB."
        ),
        target: str = typer.Option("2%", "--target", help="Target half-width of the interval."),
        within: str | None = typer.Option(
            None, "--within", help="Time limit of the measurement. Default: 2min, or longer for a first verdict."
        ),
        blocks: int | None = typer.Option(
            None, "--blocks", min=1, max=1000, help="Run this many blocks, not to a target."
        ),
        explain: bool = ExplainOption,
        trace: str | None = TraceOption,
        directory: Path | None = typer.Option(None, "--out", help="The run directory. Default: a new one."),
        cpu_idle: CpuIdle = typer.Option(
            "auto", "--cpu-idle", help="Let idle CPUs halt or poll; auto: poll on a virtual machine (as root)."
        ),
        save: Path | None = typer.Option(None, "--save", help="Write a study file and run nothing."),
        export_json: Path | None = typer.Option(
            None, "--export-json", help="Also write the JSON of 'report --json'."
        ),
        beside_others: bool = BesideOthersOption,
        rehearsal: bool = RehearsalOption,
        yes: bool = typer.Option(False, "--yes", "-y", help="Accepted as by run; weigh never asks.", hidden=True),
    ) -> None:
        """Weigh your own program: what does isolation cost it?

        It runs natively and isolated, in turns, from the same files: this machine's, or an image's. What it writes to
        the current folder and /tmp stays in memory and is discarded. Runs go to ~/.local/share/weighbridge/runs.
        """
        from weighbridge.runner.living import require_alone
        from weighbridge.study.weighed import Weighed

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
        if server is not None and ready is None:
            _require_port(server, against if image is None else None)
        _require_text(*command, server, against, *parameters, *beside.values())
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
            target=target,
            within=within or "2min",
            blocks=blocks,
            explain=explain,
            trace=trace or "",
            cpu_idle=cpu_idle,
        )
        if save is None:
            require_alone(beside_others=beside_others)
        short_time: ShortTime = "extend" if within is None else "keep" if rehearsal else "refuse"
        _weigh(weighed, directory, save, export_json, short_time, [*given_variables(env)], rehearsal=rehearsal)


def _weigh(
    weighed: "Weighed",
    directory: Path | None,
    save: Path | None,
    export: Path | None,
    short_time: "ShortTime",
    env: Sequence[str],
    *,
    rehearsal: bool,
) -> None:
    from weighbridge.model.secret import env_options, variables_of
    from weighbridge.model.stored_study import secrets_of
    from weighbridge.study.weighed import study_text

    study = _checked_study(partial(study_text, weighed))
    if save is not None:
        write_new(save, study.text)
        out().print(f"{save} written. Next: weighbridge plan {save}", markup=False, soft_wrap=True)
        if variables := variables_of(secrets_of(study)):
            sentence = f"The file contains no values of --env. Run it with {env_options(variables)}."
            out().print(sentence, markup=False, soft_wrap=True)
        return
    _run(study, directory, export, short_time, env, rehearsal=rehearsal)


def _run(
    study: "Study",
    directory: Path | None,
    export: Path | None,
    short_time: "ShortTime",
    env: Sequence[str],
    *,
    rehearsal: bool,
) -> None:
    """Run it as `weighbridge run` does, and write what is asked for beside the report."""
    from weighbridge.cli.approval import announce
    from weighbridge.cli.progress import show
    from weighbridge.cli.run import new_directory, report_run
    from weighbridge.cli.runs import continuable
    from weighbridge.report.export.json import report_json
    from weighbridge.report.text.next_step import continuing
    from weighbridge.runner.run import run_study
    from weighbridge.runner.signals import interruptible
    from weighbridge.store.run import RunStore

    if directory is not None:
        _require_own_run(directory, study)
    directory = directory or _runs() / new_directory(study).name
    announce(study, directory, rehearsal=rehearsal, timed=False)
    with (
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
    """Raise RunDirectoryError where a directory holds a run of another command; one without a trial is removed."""
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
    """Where the program is: on this machine, in an image of the engine, or in one that was saved to a file."""
    from weighbridge.study.compose_key import image_userland

    if image is None:
        return _this_machine(env)
    if env:
        fail("--env does not work with an image, which sets its own variables: remove it", WRONG_COMMAND_LINE)
    return image_userland(image)


def _entry_point(userland: Mapping[str, Any]) -> tuple[str, ...]:
    """The words that come before those of a program, as `docker run` has it."""
    from pydantic import ValidationError

    from weighbridge import registry

    source = registry.userlands()[userland["kind"]]
    try:
        options = source.options.model_validate(userland)
    except ValidationError:
        fail(f"{userland['image']!r} is neither a file nor a valid image name", WRONG_COMMAND_LINE)
    return source.entry_point(options)


def _this_machine(env: Sequence[str]) -> Mapping[str, Any]:
    """This machine's programs, started in the current folder; in / nothing can be written anyway."""
    from weighbridge.model.site import NO_START_FOLDERS

    try:
        folder = Path.cwd()
    except FileNotFoundError:
        fail("the current folder has been removed: cd to another one", WRONG_COMMAND_LINE)
    if str(folder) in NO_START_FOLDERS:
        fail(f"programs cannot start in {folder}, which every environment replaces: cd ~ first", WRONG_COMMAND_LINE)
    return {"kind": "host", **({} if folder == Path("/") else {"folder": str(folder)}), "env": _variables(env)}


def _runs() -> Path:
    """Where runs go: not below the folder that is weighed, which would grow meanwhile."""
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
    """``rps=json:$.summary.rps,higher,1/s``: the path or pattern may have commas itself, the last two are ours."""
    name, _, rest = option.partition("=")
    how, _, words = rest.partition(":")
    parts = words.rsplit(",", 2)
    if how not in ("json", "regex") or len(parts) != 3 or parts[1] not in ("higher", "lower"):
        message = "write NAME=json:PATH,higher|lower,UNIT or NAME=regex:PATTERN,higher|lower,UNIT"
        fail(f"--metric {shlex.quote(option)}: {message}", WRONG_COMMAND_LINE)
    return name, {how: parts[0], "better": parts[1], "unit": parts[2]}


def _require_command(command: Sequence[str], server: str | None, image: str | None = None) -> None:
    """End with an example where there is no program; an ``image`` may have one of its own."""
    if command or image is not None:
        return
    if server is None:
        fail("name the program to weigh: weighbridge weigh -- ./my-benchmark", WRONG_COMMAND_LINE)
    fail("name the server's client: weighbridge weigh ... -- curl -s http://{address}:{port}/", WRONG_COMMAND_LINE)


def _labels(option: str | None, against: str | None) -> dict[str, tuple[str, str]]:
    """``before=glibc,after=musl``: the names of the two programs that are compared, for a `Weighed`."""
    if option is None:
        return {}
    if against is None:
        fail("--label needs --against: it names the two versions", WRONG_COMMAND_LINE)
    pairs = dict(each.split("=", 1) for each in option.split(",") if "=" in each)
    before, after = pairs.get("before", ""), pairs.get("after", "")
    if (
        {*pairs} != {"before", "after"}
        or before == after
        or not all(re.fullmatch(_LABEL, each) for each in (before, after))
    ):
        fail(
            f"--label {shlex.quote(option)}: write before=A,after=B, with two names of letters and digits",
            WRONG_COMMAND_LINE,
        )
    return {"labels": (before, after)}


def _require_port(*servers: str | None) -> None:
    """End with a sentence where a server's words do not tell it its port."""
    for server in servers:
        if server is not None and not any(place in server for place in ("{port}", "{data_port}")):
            message = "its port is missing: write {port} where it belongs, or name a fixed one with --ready PORT"
            fail(f"--server {shlex.quote(server)}: {message}", WRONG_COMMAND_LINE)


def _server_behind(entry_point: Sequence[str], server: str) -> str:
    """The command line of a server whose words an image has its own in front of."""
    return " ".join([shlex.join(entry_point), server]).strip()


def _earlier_image(image: str, command: Sequence[str], server: str | None) -> "Earlier":
    """The same words in another image, behind that image's own entry point."""
    from weighbridge.study.weighed import Earlier

    where = _userland(image, ())
    entry_point = _entry_point(where)
    if server is not None:
        return Earlier(where, server=_server_behind(entry_point, server))
    return Earlier(where, command=[*entry_point, *command])


def _earlier_program(program: str, *, server: bool, shell: bool) -> "Earlier":
    """Another program of this machine: the server where there is one, whose client is the same."""
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
    """The options of a command line that are about a cluster."""

    asked: bool
    context: str
    namespace: str
    images: str

    def applied_to(self, environments: Sequence[str], without: Mapping[str, Any]) -> "ClusterFlags | None":
        """These, where one of them or a name of ``--in`` asks for a cluster; else None.

        Ends with a sentence where an option is given that has no meaning there, one of ``without``.
        """
        from weighbridge import registry

        kinds = registry.of_clusters().values()
        there = {name for kind in kinds for name in registry.weighed_in(kind.options.traits)}
        only_there = there - {*registry.weighed_in()}
        asked = self.asked or self.context or self.namespace or self.images or {*environments} & only_there
        if not asked:
            return None
        if given := [option for option, value in without.items() if value]:
            fail(f"--{given[0]} does not work in a cluster: remove it", WRONG_COMMAND_LINE)
        return self

    def usual(self, *, one: bool) -> list[str]:
        """What is weighed where nobody says; ``one``: not each way to a server."""
        from weighbridge.study.weighed import USUAL_IN_CLUSTER, USUAL_OF_SERVERS_IN_CLUSTER

        return [*(USUAL_IN_CLUSTER if one else USUAL_OF_SERVERS_IN_CLUSTER)]

    def where(self, commands: Sequence[Sequence[str] | str | None], *, has_server: bool, ask: bool) -> dict[str, Any]:
        """What a `Weighed` has of the cluster, for these commands of no image. Raises Unavailable.

        Not where it may not ``ask`` the cluster.
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
    """The Debian packages of the programs of commands; ends with a sentence where one is in none."""
    from weighbridge.runner.userlands import package_of

    packages: dict[str, None] = {}
    for command in commands:
        try:
            words = shlex.split(command) if isinstance(command, str) else [*(command or ())]
        except ValueError:
            continue  # the study's check tells it
        if words and "{" not in words[0]:
            package = package_of(words[0])
            if not package:
                fail(f"{words[0]} is in no Debian package that is known here: give --image", WRONG_COMMAND_LINE)
            packages[package] = None
    return [*packages]


@dataclass(frozen=True, slots=True)
class ComposeFlags:
    """The options of a command line that are about a Compose file."""

    file: Path | None = None
    service: str | None = None
    without: Sequence[str] = ()
    saved: Sequence[str] = ()
    image: str | None = None
    """In place of the service's own: a name, or a file."""
    port: int | None = None

    def require_whole(self, *, server: bool, shell: bool) -> None:
        """End with a sentence where something is missing, or has no meaning."""
        if self.file is None:
            beside = {"--service": self.service, "--without": self.without, "--saved": self.saved}
            if options := [option for option, value in beside.items() if value]:
                fail(f"{options[0]} needs a Compose file: add --compose FILE", WRONG_COMMAND_LINE)
        elif not self.file.is_file():
            fail(f"--compose: there is no file {self.file}", WRONG_COMMAND_LINE)
        elif self.service is None:
            fail("--compose needs the service to weigh: add --service NAME", WRONG_COMMAND_LINE)
        elif server or shell:
            which = "--server" if server else "--shell"
            fail(f"{which} does not work with --compose (the service is the server): remove it", WRONG_COMMAND_LINE)


def _weighed_service(flags: ComposeFlags) -> dict[str, Any]:
    """What a `Weighed` has of the service. Says on stderr what is left out.

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
    """The names of the first choice that is ready here. Says so where that is not the first one of all.

    Where none is ready, a study that is only saved has the first one of all. Raises Unavailable for another.
    """
    from weighbridge.errors import Unavailable
    from weighbridge.runner.default_environments import default_environments
    from weighbridge.study.weighed import USUAL, USUAL_OF_SERVERS

    server = where.get("server") is not None
    defaults = default_environments(where["userland"]["kind"], server=server)
    if not defaults.ready and not save:
        what = "a server" if server else "a program"
        raise Unavailable(f"nothing that isolates {what} is ready here; one is enough: {defaults.remedies}")
    if defaults.ready and defaults.passed_over:
        _tell(defaults)
    return [*defaults.ready] or (USUAL_OF_SERVERS if server else USUAL)[0]


def _tell(defaults: "DefaultEnvironments") -> None:
    from weighbridge.study.weighed import WITHOUT_ENGINE

    why = "; ".join(f"{name}: {state.detail}" for name, state in defaults.passed_over.items())
    shows = f"; {_ENGINE_SHOWS}" if {*defaults.ready} <= WITHOUT_ENGINE else ""
    err().print(f"note: using {', '.join(defaults.ready)} ({why}){shows}", markup=False, soft_wrap=True)


def _checked_study(make_text: Callable[[], str]) -> "Study":
    """Return the checked study; its lines are in no file, and no message names them."""
    from weighbridge.errors import StudyError
    from weighbridge.study.loader import check
    from weighbridge.study.source import parse

    try:
        return check(parse(make_text(), _STUDY)).model_copy(update={"lines": {}})
    except StudyError as error:
        problems = dict.fromkeys(_LINE.sub("", str(error)).splitlines())  # of several environments once
        fail("\n".join(problems), WRONG_COMMAND_LINE)


def _require_text(*words: str | None) -> None:
    """End with a sentence where a word is not text: a run keeps them, and a report shows them."""
    for word in words:
        try:
            (word or "").encode()
        except UnicodeEncodeError:
            fail(f"{word!a} is not UTF-8: write it in UTF-8", WRONG_COMMAND_LINE)


def _require_programs(commands: Sequence[Sequence[str] | str | None], env: Mapping[str, Any]) -> None:
    """End with a sentence where a command's program is not on this machine, unless a placeholder names it."""
    for command in commands:
        try:
            words = shlex.split(command) if isinstance(command, str) else command
        except ValueError:
            continue  # the study's check tells it
        if not words or "{" in words[0]:
            continue
        name = words[0]
        if "/" in name and not Path(name).exists():
            fail(f"{name}: no such program; check the path, or add --shell", WRONG_COMMAND_LINE)
        if "/" in name and not os.access(name, os.X_OK):
            fail(f"{name} is not executable: chmod +x, or put its interpreter before it", WRONG_COMMAND_LINE)
        if "/" not in name and shutil.which(name, path=str(env.get("PATH", os.defpath))) is None:
            hint = f"; try ./{name}" if Path(name).exists() else "; a word of the shell needs --shell"
            fail(f"{name}: not found in PATH{hint}", WRONG_COMMAND_LINE)
