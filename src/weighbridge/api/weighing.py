"""Measures a command, by the same program as on the command line."""

import contextlib
import os
import re
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from weighbridge import errors
from weighbridge.api.run import Run, load
from weighbridge.cli.messages import PREFIX
from weighbridge.cli.runs import default_folder
from weighbridge.linux.process import LoggedProcess
from weighbridge.model.text import one_line

_PAUSE_S = 0.05


def weigh(
    command: Sequence[str],
    *,
    environments: Sequence[str] = (),
    against: Sequence[str] | None = None,
    rounds: int | None = None,
    within: str | None = None,
    out: str | os.PathLike[str] | None = None,
    options: Sequence[str] = (),
) -> Run:
    """Measure a command natively and isolated, and return the run.

    It runs `weighbridge weigh` in a process of its own, with the same rights and the same effects on this machine,
    and prints nothing. Ctrl-C ends it cleanly, and finished trials are kept.

    - ``command``: a list of words: the program and its arguments.
    - ``environments``: the names of ``weighbridge weigh --in``. The machine itself ("native") is always measured.
    - ``against``: the words of an older version of the command. Both are then measured in one environment.
    - ``rounds``: the exact number of rounds. Without it, the run stops when it is precise, or after ``within``.
    - ``within``: a time limit, such as ``"2min"``.
    - ``out``: the run directory. By default, it is a new one in ``~/.local/share/weighbridge/runs``.
    - ``options``: further words of `weighbridge weigh`, such as ``["--cpus", "1"]``.

    Raises WeighbridgeError with the sentence and the exit code of the command if it fails.
    """
    examples = ["./prog", "--fast"], ["./old"], ["docker"], ["--cpus", "1"]
    for words, example in zip((command, against, environments, options), examples, strict=True):
        if isinstance(words, str):
            raise errors.WeighbridgeError(f"'{words}' is a text: give a list, such as {example}")
    place = Path(out) if out is not None else _new_directory()
    isolated = [name for name in environments if name != "native" or against is not None] or environments
    given = {
        "--in": ",".join(isolated), "--against": shlex.join(against or ()), "--rounds": rounds,
        "--within": within, "--out": place,
    }  # fmt: skip
    chosen = [str(word) for option, value in given.items() if value not in ("", None) for word in (option, value)]
    try:
        run_command("weigh", *chosen, *options, "--", *command)
    finally:
        if out is None:
            with contextlib.suppress(OSError):  # it stays if it has a run
                place.rmdir()
    return load(place)


def run_command(*words: str) -> None:
    """Run a command of Weighbridge to its end. Raises WeighbridgeError with its sentence if it fails."""
    with tempfile.TemporaryDirectory(prefix="weighbridge-") as folder:
        log = Path(folder) / "output"
        process = LoggedProcess((sys.executable, "-P", "-m", "weighbridge", *words), log, {})
        try:
            code = _end_of(process)
        except BaseException:
            process.signal(signal.SIGINT)  # it removes everything that it made, which can take some seconds
            _end_of(process)
            raise
        if code:
            raise _failure(code, log.read_text(errors="replace"))


def _end_of(process: LoggedProcess) -> int:
    """Return the exit code of a process when it has ended."""
    while (code := process.poll()) is None:
        time.sleep(_PAUSE_S)
    return code


def _failure(code: int, output: str) -> errors.WeighbridgeError:
    """Return the error for an exit code, with the sentences of the command."""
    sentences = [line.removeprefix(PREFIX) for line in output.splitlines() if line.startswith(PREFIX)]
    last = one_line((output.splitlines() or ["it printed nothing"])[-1], 200)
    said = re.sub(r"(add|needs) (--shell)$", r"\1 options=['\2']", "\n".join(sentences), flags=re.MULTILINE)
    kinds = {kind.exit_code: kind for kind in reversed(errors.WeighbridgeError.__subclasses__())}
    kind = kinds.get(code, errors.WeighbridgeError) if code != 1 else errors.WeighbridgeError
    error = kind(said or f"the command ended with code {code}: {last}")
    error.exit_code = code
    return error


def _new_directory() -> Path:
    folder = default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=time.strftime("python-%Y%m%d-%H%M%S-"), dir=folder))
