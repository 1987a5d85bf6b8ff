"""The captured outputs in ``data/KIND``, and what is expected of them: ``expected.json`` in the same folder.

``measured`` has outputs with the values that stand in them, ``failed`` has outputs with the outcome of their trial.
``refused`` has options that the workload does not accept, and ``commands`` what it runs with other options. See
data/README.md for the origin of the outputs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from usual_options import NEEDED
from weighbridge import registry
from weighbridge.model.command import Completed
from weighbridge.model.measurement import Measurement
from weighbridge.model.options import Options
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload

DATA = Path(__file__).parent / "data"
AT = Endpoint(listen="0.0.0.0", address="192.0.2.7", port=15201, client="192.0.2.8")
UDP = {"protocol": "udp", "bitrate": "10Mbit/s"}
TWO = {"duration": "2s"}
SMALL_FILES = {"files": 4, "file_size": "16MiB", "duration": "1s"}


def ended(stdout: bytes = b"", stderr: bytes = b"", returncode: int = 0) -> Completed:
    """Return a process that ended by itself."""
    return Completed(argv=("x",), returncode=returncode, stdout=stdout, stderr=stderr, duration_s=1.0)


@cache
def data(name: str) -> bytes:
    """Return one captured output by its name, which has the folder for runs of others (printed/NAME)."""
    if "/" in name:
        return (DATA / name).read_bytes()
    (path,) = (path for path in DATA.glob(f"*/{name}") if path.parent.name != "printed")
    return path.read_bytes()


@dataclass(frozen=True)
class Case:
    """A captured output of one kind with some options, and the values that stand in it.

    ``file`` is the output of the role that reports them (by default the measured one), ``beside`` the others.
    ``stream`` is where that role printed it, ``lacks`` are declared metrics that this trial cannot have had.
    """

    kind: str
    file: str
    values: dict[str, float]
    options: dict[str, Any] = field(default_factory=dict)
    role: str = ""
    beside: dict[str, str] = field(default_factory=dict)
    stream: Literal["stdout", "stderr"] = "stdout"
    lacks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.file

    @property
    def workload(self) -> Workload:
        """Return the plug-in."""
        return registry.workloads()[self.kind]

    @cached_property
    def read_options(self) -> Options:
        """Return the options as the plug-in reads them."""
        return options_of(self.kind, self.options)

    @property
    def stdout(self) -> bytes:
        """Return the captured output."""
        return data(self.file)

    def parse(self, stdout: bytes, stderr: bytes = b"", returncode: int = 0) -> tuple[Measurement, ...]:
        """Return the measurements of an output with this case's options and the measured role's exit code."""
        return self.result(stdout, stderr, returncode).measurements

    def result(self, stdout: bytes, stderr: bytes = b"", returncode: int = 0) -> TrialResult:
        """Return the result of an output."""
        roles = self.workload.roles(self.read_options)
        role = self.role or roles[-1]
        printed = {name: (data(file), b"") for name, file in self.beside.items()}
        printed[role] = (stdout, b"") if self.stream == "stdout" else (b"", stdout)
        completed = {name: ended(*printed.get(name, (b"", b""))) for name in roles}
        out, err = printed.get(roles[-1], (b"", b""))
        completed[roles[-1]] = ended(out, err + stderr, returncode)
        return self.workload.parse(self.read_options, completed)


@dataclass(frozen=True)
class Failure:
    """Outputs of a trial without measurements, and its outcome.

    An output is the name of a file, a text, or a file with one change (``file``, ``old``, ``new``). ``server`` has
    the streams and the exit code of the server.
    """

    kind: str
    entry: Mapping[str, Any]

    def __str__(self) -> str:
        shown = {key: value for key, value in self.entry.items() if key != "outcome"}
        return f"{self.kind} {json.dumps(shown)}"

    def parse(self) -> TrialResult:
        """Parse the outputs. Raises the trial's failure."""
        workload, options = registry.workloads()[self.kind], options_of(self.kind, self.entry.get("options", {}))
        roles = workload.roles(options)
        completed = {role: _ended(self.entry.get("server", {})) for role in roles}
        completed[roles[-1]] = _ended(self.entry)
        return workload.parse(options, completed)


def result(
    kind: str,
    options: dict[str, Any],
    stdout: bytes,
    stderr: bytes = b"",
    returncode: int = 0,
    others: dict[str, bytes] | None = None,
    aside: dict[str, bytes] | None = None,
) -> TrialResult:
    """Parse the output of the measured role. The others printed ``others``, and ``aside`` to standard error."""
    workload, read = registry.workloads()[kind], options_of(kind, options)
    roles = workload.roles(read)
    completed = {role: ended((others or {}).get(role, b""), (aside or {}).get(role, b"")) for role in roles}
    completed[roles[-1]] = ended(stdout, stderr, returncode)
    return workload.parse(read, completed)


def parse(kind: str, *arguments: Any, **named: Any) -> tuple[Measurement, ...]:
    """Return the measurements of `result`."""
    return result(kind, *arguments, **named).measurements


def options_of(kind: str, options: Mapping[str, Any]) -> Options:
    return registry.workloads()[kind].options.model_validate({**NEEDED.get(kind, {}), **options})


def _ended(entry: Mapping[str, Any]) -> Completed:
    return ended(_stream(entry.get("stdout")), _stream(entry.get("stderr")), entry.get("returncode", 0))


def _stream(written: str | Mapping[str, str] | None) -> bytes:
    if isinstance(written, str):
        return data(written)
    if written is None or "text" in written:
        return (written or {}).get("text", "").encode()
    whole, old = data(written["file"]), written["old"].encode()
    assert whole.count(old) == 1
    return whole.replace(old, written["new"].encode())


EXPECTED = {path.parent.name: json.loads(path.read_text()) for path in sorted(DATA.glob("*/expected.json"))}
GOOD = [
    Case(kind, **{**entry, "options": NEEDED.get(kind, {}) | entry.get("options", {})})
    for kind, entries in EXPECTED.items()
    for entry in entries["measured"]
]
FAILED = [Failure(kind, entry) for kind, entries in EXPECTED.items() for entry in entries.get("failed", ())]
REFUSED = [(kind, options) for kind, entries in EXPECTED.items() for options in entries.get("refused", ())]
COMMANDS = [(kind, entry) for kind, entries in EXPECTED.items() for entry in entries.get("commands", ())]
