"""The programs of each role as small scripts, which run natively as well as in a container."""

import hashlib
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

from weighbridge.errors import StudyError
from weighbridge.features.kit.contents import KitCell, KitEnvironment
from weighbridge.features.kit.text import one_line, shell_line, shell_word
from weighbridge.model.command import SITE_ENV, Command
from weighbridge.model.measurement import TrialFailure
from weighbridge.model.secret import SecretName, secrets_in
from weighbridge.model.study import Role

Files = dict[str, bytes]


def cell_files(environment: KitEnvironment, cell: KitCell) -> tuple[Files, Files]:
    """Return the scripts of a workload in an environment, and the files that they read; both by path in the kit.

    Raises StudyError if the workload cannot describe its programs.
    """
    folder = f"environments/{environment.folder}/{cell.folder}"
    scripts: Files = {}
    read: Files = {}
    try:
        for name, role, command in _programs(cell):
            data = name in ("prepare", "restore", "finish")  # shared by levels, which start from the same data
            of_role = {} if data else cell.workload.files(role, cell.options, cell.ends[role])
            subject = cell.cell.workload if data else cell.cell.label
            title = f"{subject}, {name.replace('_', '-')}, in {environment.arm.name}"
            paths = {path: _place_file(read, path, content) for path, content in of_role.items()}
            stdin = _place_file(read, "stdin", command.stdin) if command.stdin else ""
            started = {path for path in of_role if cell.workload.file_mode(cell.options, path) & 0o100}
            reads = "" if name == "check" else "/dev/null"
            script = _script(title, command, paths, stdin, started, ends=name != "server", reads=reads)
            scripts[f"{folder}/{name}.sh"] = script
    except TrialFailure as failure:
        raise StudyError(f"{cell.cell.label}: {failure}") from failure
    if jq := cell.workload.jq(cell.options):
        metric = cell.workload.metrics(cell.options)[0]
        scripts[f"{folder}/headline.jq"] = f"# {metric.name} in {metric.unit}\n{jq}\n".encode()
    return scripts, read


def secrets_of(cell: KitCell) -> tuple[SecretName, ...]:
    """Return the secrets whose values its scripts need."""
    commands = [command for _, _, command in _programs(cell)]
    texts = (text for command in commands for text in (*command.argv, *command.env.values()))
    return tuple(dict.fromkeys(name for text in texts for name in secrets_in(text)))


def listens(cell: KitCell) -> tuple[str, int]:
    """Return the ports on which its server listens, as listening.sh reads them, and the signal that ends it."""
    if "server" not in cell.roles:
        return "", 15
    command = cell.command("server")
    return " ".join(f"{transport}:{port}" for transport, port in command.listens), int(command.stop_signal)


def _programs(cell: KitCell) -> Iterator[tuple[str, Role, Command]]:
    """Yield each script's name, the role in whose site it runs, and its command."""
    workload, options = cell.workload, cell.options
    first, measured = cell.ends[cell.roles[0]], cell.ends[cell.roles[-1]]
    before = {"prepare": workload.prepare(options, first), "restore": workload.restore(options, first)}
    yield from ((name, cell.roles[0], command) for name, command in before.items() if command is not None)
    if (warm_up := workload.warm_up(options, measured)) is not None:
        yield "warm_up", cell.roles[-1], warm_up
    for role in cell.roles:
        yield role, role, cell.command(role)
    if (check := workload.check(options, measured)) is not None:
        yield "check", cell.roles[-1], check
    if (finish := workload.finish(options, first)) is not None:
        yield "finish", cell.roles[0], finish


def _place_file(read: Files, path: str, data: bytes) -> str:
    """Add a file for scripts, and return its path; several workloads can share one."""
    place = f"files/{hashlib.sha256(data).hexdigest()[:12]}/{PurePosixPath(path).name}"
    read[place] = data
    return place


def _script(
    title: str,
    command: Command,
    files: Mapping[str, str],
    stdin: str,
    started: Collection[str] = (),
    *,
    ends: bool,
    reads: str = "/dev/null",
) -> bytes:
    """Return a script. ``started`` are the files that are programs; ``reads`` is the input without ``stdin``."""
    lines = [
        "#!/bin/sh",
        "# shellcheck shell=dash disable=SC2016",
        f"# {one_line(title)}",
        "set -eu",
        *(['kit=$(dirname "$0")/../../..'] if files or stdin else []),
        'ulimit -n "$(ulimit -H -n)"',
    ]
    for name, value in {"LANG": SITE_ENV["LANG"], **command.env}.items():
        lines.append(f"export {shlex.quote(name)}={shell_word(value)}")
    for path, place in files.items():
        lines.append(f"mkdir -p {shlex.quote(str(PurePosixPath(path).parent))}")
        lines.append(f'cp "$kit"/{shlex.quote(place)} {shlex.quote(path)}')
        lines += [f"chmod 755 {shlex.quote(path)}"] if path in started else []
    deadline = ("timeout", "--foreground", "-k", "5", f"{command.deadline_s:.0f}") if ends else ()
    source = f'"$kit"/{shlex.quote(stdin)}' if stdin else reads
    lines.append(f"exec {shell_line((*deadline, *command.argv))}" + (f" <{source}" if source else ""))
    return ("\n".join(lines) + "\n").encode(errors="replace")
