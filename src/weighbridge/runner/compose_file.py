"""Lets Docker Compose read Compose files, because only it knows their whole format."""

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path

from weighbridge.errors import StudyError, Unavailable
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import run, which
from weighbridge.model.command import Command, Completed
from weighbridge.model.study import Study
from weighbridge.study import profiles
from weighbridge.study.source import Origin, plain

_DEADLINE_S = 60.0
_NO_PLUG_IN = (b"is not a docker command", b"unknown command: docker compose", b"unknown shorthand flag: 'f'")
"""The errors of docker versions that do not have the Compose plug-in."""


def load_study(
    origin: Origin, agree: Callable[[str], None], profile: str | None = None, link: str | None = None
) -> Study:
    """Load any study as `weighbridge.study.profiles.load` does; docker-compose reads the Compose file that it names.

    ``agree`` is called with the path of that file before docker-compose starts, and raises if the user refuses.
    Raises StudyError, Unavailable, UserlandError.
    """

    def normalised_once_agreed(file: str) -> str:
        agree(file)
        return normalised(file)

    return profiles.load(origin, profile, link, normalised_once_agreed)


def normalised(
    file: str, run: Callable[[Command], Completed] = run, which: Callable[[str], str | None] = which
) -> str:
    """Return what ``docker-compose config`` prints of a file. Raises Unavailable, or StudyError if it refuses."""
    argv = _compose(which)
    completed = run(Command((*argv, "-f", file, "config"), _DEADLINE_S))
    if completed.timed_out:
        raise StudyError(f"compose: {argv[0]} did not finish reading {plain(file, 200)} within {_DEADLINE_S:.0f} s")
    if completed.returncode != 0 and len(argv) > 1 and any(words in completed.stderr for words in _NO_PLUG_IN):
        raise Unavailable(_not_installed())
    if completed.returncode != 0:
        # it wraps a sentence over several lines
        why = " ".join(completed.stderr.decode(errors="replace").split()) or completed.last_words
        why = _without_values(why, Path(file))
        raise StudyError(f"compose: {' '.join(argv)} rejects {plain(file, 200)}: {plain(why, 500)}")
    return completed.stdout.decode(errors="replace")


def _without_values(why: str, file: Path) -> str:
    """Return a message with the names of the file's variables in the place of their values."""
    values: dict[str, str] = {}
    for environment in (file.parent / ".env", Path(".env")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            pairs = (line.partition("=") for line in environment.read_text().splitlines())
            values |= {name.strip(): value.strip(" '\"") for name, _, value in pairs}
    values |= os.environ
    written = ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        written = file.read_text()
    for name in dict.fromkeys(re.findall(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)", written)):
        if value := values.get(name):
            why = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"${{{name}}}", why)
    return why


def _not_installed() -> str:
    return f"docker-compose, which reads Compose files, is not installed: {install_here(['docker-compose'])}"


def _compose(which: Callable[[str], str | None]) -> tuple[str, ...]:
    if (alone := which("docker-compose")) is not None:
        return (alone,)
    if (docker := which("docker")) is not None:  # Docker Compose can be its plug-in
        return docker, "compose"
    raise Unavailable(_not_installed())
