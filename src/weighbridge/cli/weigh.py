"""`weighbridge weigh`."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from weighbridge.cli.output import WRONG_COMMAND_LINE, err, examples, fail, out, write_new
from weighbridge.cli.weigh_against import earlier_image, earlier_program, server_behind
from weighbridge.cli.weigh_compose import ComposeWords, weighed_service
from weighbridge.cli.weigh_inside import usual_inside
from weighbridge.cli.weigh_mistakes import checked, require_programs, require_text

if TYPE_CHECKING:
    from weighbridge.model.study import Study
    from weighbridge.study.weighed import Weighed

_HANDED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
"""The variables of the user's that a program on this machine gets without being asked for."""
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_PARAMETER = r"[A-Za-z][A-Za-z0-9_]*"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        context_settings={"allow_interspersed_args": False},  # as of env(1): what follows the program is its own
        epilog=examples(
            "weighbridge weigh -- python3 fib.py",
            "weighbridge weigh --in docker,gvisor -- ./my-benchmark",
            "weighbridge weigh --parameter size=64,1k,64k --prepare sync -- ./pack {size}",
            "weighbridge weigh --server 'redis-server --bind {listen} --port {port} --protected-mode no' "
            "-- redis-benchmark -h {address} -p {port} -n 20000 -t set -q",
            "weighbridge weigh --metric 'rps=json:$.summary.rps,higher,1/s' -- ./load",
            "weighbridge weigh --compose compose.yaml --service shop -- oha -n 20000 http://{address}:{port}/",
            "weighbridge weigh --against ./old-benchmark --in native -- ./my-benchmark",
            "weighbridge weigh --image shop:1.5 --against shop:1.4 -- --self-test",
            "weighbridge weigh --save mine.yaml -- ./my-benchmark",
        ),
    )
    def weigh(
        command: list[str] = typer.Argument(help="The program with its arguments, behind --."),
        inside: list[str] = typer.Option(
            [],
            "--in",
            metavar="NAME,...",
            help="What it is weighed in: a kind of environment (doctor lists them), or of Docker host, none, bridge, "
            "published, gvisor, or podman-rootless. Default: docker, else podman-rootless, else netns; with "
            "--server: netns,bridge, without root bridge; with --against: native, bridge of a server or an image.",
        ),
        server: str | None = typer.Option(
            None, "--server", metavar="COMMAND", help="A server, which is inside; the program is its client, outside."
        ),
        ready: int | None = typer.Option(
            None,
            "--ready",
            metavar="PORT",
            min=1,
            max=65534,
            help="The port of a server that cannot be told one: it is ready there.",
        ),
        compose: Path | None = typer.Option(
            None, "--compose", help="A Compose file: one service of it is the server, the others stay beside it."
        ),
        service: str | None = typer.Option(None, "--service", help="The service of it that is weighed."),
        without: list[str] = typer.Option(
            [], "--without", metavar="KEY,...", help="What of the Compose file is not honoured, and left out."
        ),
        saved: list[str] = typer.Option(
            [], "--saved", metavar="IMAGE=FILE", help="An image of it that is in a file of docker save."
        ),
        image: str | None = typer.Option(
            None,
            "--image",
            help="Weigh it in this image, of your engine or saved in a file; natively in a chroot of its files. "
            "With --server that is the server's, and its client is of this machine.",
        ),
        against: str | None = typer.Option(
            None,
            "--against",
            metavar="COMMAND|IMAGE",
            help="Compare it with an older one in the same environment, and not with itself natively: a command "
            "(with --server: a server), or with --image another image.",
        ),
        parameters: list[str] = typer.Option(
            [], "--parameter", "-L", metavar="NAME=A,B,...", help="Values that {NAME} stands for, each weighed."
        ),
        metrics: list[str] = typer.Option(
            [],
            "--metric",
            metavar="NAME=json:PATH,higher|lower,UNIT",
            help="A figure that it prints, by JSONPath or by regex:PATTERN with a group. The first is the headline.",
        ),
        adapter: str | None = typer.Option(
            None, "--adapter", help="Whose output it prints: hyperfine, oha, wrk, vegeta, k6, go-bench, jmh, ..."
        ),
        prepare: str | None = typer.Option(
            None, "--prepare", "-p", help="Run before each counted run, not measured."
        ),
        setup: str | None = typer.Option(
            None, "--setup", "-s", help="Run once in each environment, before the first."
        ),
        cleanup: str | None = typer.Option(
            None, "--cleanup", "-c", help="Run once in each environment, after the last."
        ),
        check: str | None = typer.Option(
            None, "--check", help="Run after each; where it fails the run is a failed one."
        ),
        warm_up: bool = typer.Option(
            False, "--warmup", "-w", help="Run it once, uncounted, before each counted run."
        ),
        shell: bool = typer.Option(False, "--shell", help="Have sh read the program's words as one line."),
        env: list[str] = typer.Option(
            [],
            "--env",
            "-e",
            metavar="NAME[=VALUE]",
            help="A variable for it, kept in the run; PATH, HOME and the locale it has.",
        ),
        deadline: str | None = typer.Option(None, "--deadline", help="The longest that it may run. Default: 5min."),
        cpus: float | None = typer.Option(None, "--cpus", help="CPUs that it may use, everywhere."),
        memory: str | None = typer.Option(None, "--memory", help="Memory that it may use, everywhere: 512MiB."),
        target: str = typer.Option("2%", "--target", help="How precise the answer is to be."),
        within: str = typer.Option("2min", "--within", help="The time that it may take."),
        blocks: int | None = typer.Option(None, "--blocks", min=1, max=1000, help="So many blocks instead."),
        directory: Path | None = typer.Option(
            None, "--out", help="The run directory. Default: in ~/.local/share/weighbridge."
        ),
        save: Path | None = typer.Option(None, "--save", help="Write it as a study file, and run nothing."),
        export_json: Path | None = typer.Option(None, "--export-json", help="Write what 'report --json' gives, too."),
        yes: bool = typer.Option(False, "--yes", "-y", help="As of run; weigh never asks.", hidden=True),
    ) -> None:
        """Weigh your own program: what does isolation cost it?

        It runs natively and isolated in turns, from the same files: this machine's own, or an image's. What it writes
        in the folder where you are, and to /tmp, stays in memory and is gone afterwards.
        """
        from weighbridge.study.weighed import Weighed

        beside = {"setup": setup, "prepare": prepare, "check": check, "cleanup": cleanup}
        further = {"adapter": adapter, "deadline": deadline, "warm_up": warm_up or None}
        words = ComposeWords(compose, service, without, saved, image, ready)
        words.require_whole(server=server is not None, shell=shell)
        apart = compose is not None or (image is not None and server is not None)
        where: dict[str, Any] = {"server": server, "port": ready}
        if compose is not None and against is not None:
            fail("--against: with --compose save the study twice, and compare two runs", WRONG_COMMAND_LINE)
        if compose is not None:
            where = weighed_service(words)
        else:
            where["userland"] = _userland(image, () if apart else env)
            if against is not None and image is not None:
                where["earlier"] = earlier_image(against, command, server, partial(_userland, env=()), _entry_point)
            elif against is not None:
                where["earlier"] = earlier_program(against, server=server is not None, shell=shell)
            entry_point = _entry_point(where["userland"])
            if server is None:
                command = [*entry_point, *command]
            else:
                where["server"] = server_behind(entry_point, server)
        require_text(*command, server, against, *parameters, *env, *beside.values())
        if not shell and save is None:
            here = [command, *(() if apart else (server, *beside.values()))]
            require_programs(here if image is None or apart else (), _variables(env))
        named = [name for names in inside for name in names.split(",") if name]
        if not named and against is None:
            named = [*usual_inside(where["userland"], server=where.get("server") is not None)]
        weighed = Weighed(
            command=command,
            **where,
            inside=named,
            client_userland=_this_machine(env) if apart else None,
            shell=shell,
            parameters=dict(_parameter(each) for each in parameters),
            metrics=dict(_metric(each) for each in metrics),
            beside={name: text for name, text in beside.items() if text is not None},
            further={name: value for name, value in further.items() if value is not None},
            resources={name: value for name, value in (("cpus", cpus), ("memory", memory)) if value is not None},
            target=target,
            within=within,
            blocks=blocks,
        )
        _weigh(weighed, directory, save, export_json)


def _weigh(weighed: "Weighed", directory: Path | None, save: Path | None, export: Path | None) -> None:
    from weighbridge.study.weighed import study_text

    text, study = checked(partial(study_text, weighed))
    if save is not None:
        write_new(save, text)
        out().print(f"{save} written. Next: weighbridge plan {save}", markup=False, soft_wrap=True)
        return
    _run(study, directory, export)


def _run(study: "Study", directory: Path | None, export: Path | None) -> None:
    """Run it as `weighbridge run` does, and write what is asked for beside the report."""
    from weighbridge.cli.approval import announce
    from weighbridge.cli.progress import show
    from weighbridge.cli.run import continuing, new_directory, report_run
    from weighbridge.cli.runs import continuable
    from weighbridge.report.export.json import report_json
    from weighbridge.runner.run import run_study
    from weighbridge.runner.signals import interruptible
    from weighbridge.store.run import RunStore

    directory = directory or _runs() / new_directory(study).name
    announce(study, directory)
    with interruptible(), show() as progress, continuable(directory, *continuing("run", directory, yes=True)):

        def after(store: RunStore) -> None:
            analysis = report_run(store, progress)
            if export is not None and analysis is not None:
                import json

                export.write_text(json.dumps(report_json(store, analysis), indent=2, ensure_ascii=False))
                err().print(f"JSON: {export}", markup=False)

        run_study(study, directory, progress, after)


def _userland(image: str | None, env: Sequence[str]) -> Mapping[str, Any]:
    """Where the program is: on this machine, in an image of the engine, or in one that was saved to a file."""
    from weighbridge.study.compose_key import image_userland

    if image is None:
        return _this_machine(env)
    if env:
        fail("--env is for programs of this machine: those of an image have its variables", WRONG_COMMAND_LINE)
    return image_userland(image)


def _entry_point(userland: Mapping[str, Any]) -> tuple[str, ...]:
    """The words that come before those of a program, as `docker run` has it."""
    from pydantic import ValidationError

    from weighbridge import registry

    source = registry.userlands()[userland["kind"]]
    try:
        options = source.options.model_validate(userland)
    except ValidationError:
        fail(f"there is no file {userland['image']!r}, and no image can have that name", WRONG_COMMAND_LINE)
    return source.entry_point(options)


def _this_machine(env: Sequence[str]) -> Mapping[str, Any]:
    return {"kind": "host", "folder": str(Path.cwd()), "env": _variables(env)}


def _runs() -> Path:
    """Where runs go: not below the folder that is weighed, which would grow meanwhile."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    return Path(base) / "weighbridge/runs"


def _variables(given: Sequence[str]) -> dict[str, str]:
    """The variables that are handed on: those of every program, and what ``--env`` names."""
    found = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
    for each in given:
        name, equals, value = each.partition("=")
        if not re.fullmatch(_NAME, name):
            fail(f"--env {shlex.quote(each)}: a variable is NAME or NAME=VALUE", WRONG_COMMAND_LINE)
        if not equals and name not in os.environ:
            fail(f"--env {name}: there is no variable of this name: say {name}=VALUE", WRONG_COMMAND_LINE)
        found[name] = value if equals else os.environ[name]
    return found


def _parameter(given: str) -> tuple[str, list[str]]:
    name, equals, values = given.partition("=")
    if not (re.fullmatch(_PARAMETER, name) and equals and values):
        fail(f"--parameter {shlex.quote(given)}: say NAME=A,B,...", WRONG_COMMAND_LINE)
    return name, values.split(",")


def _metric(given: str) -> tuple[str, Mapping[str, Any]]:
    """``rps=json:$.summary.rps,higher,1/s``: the path or pattern may have commas itself, the last two are ours."""
    name, _, rest = given.partition("=")
    how, _, words = rest.partition(":")
    parts = words.rsplit(",", 2)
    if how not in ("json", "regex") or len(parts) != 3 or parts[1] not in ("higher", "lower"):
        told = "say NAME=json:PATH,higher|lower,UNIT or NAME=regex:PATTERN,higher|lower,UNIT"
        fail(f"--metric {shlex.quote(given)}: {told}", WRONG_COMMAND_LINE)
    return name, {how: parts[0], "better": parts[1], "unit": parts[2]}
