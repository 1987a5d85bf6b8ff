"""An image pushed to a registry by the user's own engine, which has their credentials and certificates."""

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux import process
from weighbridge.linux.process import feed, which
from weighbridge.model.command import Command, Completed

PUSH_S = 3600.0
_ANSWER_S = 20.0
_DIGEST = re.compile(r"\bdigest: (sha256:[0-9a-f]{64})\b")


def pushing_engine() -> str:
    """Return the program that pushes images: docker if its engine answers, else podman.

    Raises Unavailable if there is neither.
    """
    for program, words in (("docker", ("version", "--format={{.Server.Version}}")), ("podman", ("--version",))):
        if which(program) is not None and process.run(Command((program, *words), _ANSWER_S)).returncode == 0:
            return program
    raise Unavailable("no engine can push images: start Docker, or install podman")


def push(program: str, reference: str, archive: Iterable[bytes]) -> str:
    """Push an image, given as ``docker save`` writes it with this name; return the registry's digest of it.

    The engine forgets the image again. Raises Unavailable, in the engine's own words.
    """
    _required(feed(Command((program, "load", "--quiet"), PUSH_S), archive), f"{program} load")
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "digest")
            words = ("--digestfile", str(file)) if program == "podman" else ()
            pushed = process.run(Command((program, "push", *words, reference), PUSH_S))
            _required(pushed, f"{program} push {reference}")
            digest = file.read_text().strip() if words else (_DIGEST.findall(pushed.text) or [""])[-1]
    finally:
        process.run(Command((program, "rmi", reference), _ANSWER_S))
    if not digest.startswith("sha256:"):
        raise Unavailable(f"{program} push {reference}: it did not print the digest of the image")
    return digest


def _required(completed: Completed, what: str) -> None:
    if completed.returncode != 0:
        raise Unavailable(f"{what}: {completed.last_words}")
