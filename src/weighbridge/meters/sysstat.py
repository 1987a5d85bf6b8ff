"""The alternative meter: ``sadc`` of sysstat reads the host at most once a second, and ``sadf -j`` prints the values.

It reads the host only, no sites. The first record of ``sadc`` is the beginning of the first interval, so a trial that
is shorter than an interval has no readings. Names and units are the same as in `weighbridge.linux.counters`.
"""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.meters.meter import NO_SAMPLERS, MeterFailed, MeterReadings, Samplers
from weighbridge.meters.scopes import host_place
from weighbridge.model.command import Command, Running
from weighbridge.model.host import Host
from weighbridge.model.trial import Series

FOLDERS = ("/usr/lib/sysstat", "/usr/lib64/sa", "/usr/lib/sa", "/usr/libexec/sysstat")
"""The paths of ``sadc`` in distributions."""
KIB = 1024.0
# sadf reads a file that it can search, not a pipe; over ssh its input is one.
_SADF = 'f=$(mktemp) || exit 1; trap \'rm -f "$f"\' EXIT; cat >"$f" && sadf -j "$f" -- "$@"'
_CPU = {
    "user": ("usr", "guest"), "nice": ("nice", "gnice"), "system": ("sys",), "iowait": ("iowait",),
    "steal": ("steal",), "irq": ("irq",), "softirq": ("soft",), "idle": ("idle",),
}  # fmt: skip
_MEMORY = {
    "memfree": "free", "avail": "available", "memused": "used", "buffers": "buffers", "cached": "cached",
    "commit": "committed",
}  # fmt: skip
_NETWORK = {
    "rxpck": ("receive_packets_per_s", 1.0), "txpck": ("transmit_packets_per_s", 1.0),
    "rxkB": ("receive_bytes_per_s", KIB), "txkB": ("transmit_bytes_per_s", KIB),
}  # fmt: skip
_DISK = {
    "rkB": ("read_bytes_per_s", KIB), "wkB": ("written_bytes_per_s", KIB), "util-percent": ("busy_share", 0.01),
}  # fmt: skip


class SysstatMeter:
    """Implements ``Meter`` with sysstat. Raises Unavailable if it is missing, or for ``hz`` above 1."""

    def __init__(self, host: Host, hz: float = 1.0) -> None:
        if hz > 1:
            raise Unavailable(
                f"'meters: {{source: sysstat}}' reads at most once per second, not {hz:g} times: set 'hz: 1'"
            )
        self._host, self._interval = host, str(round(1 / hz))
        self._sadc = next((f"{folder}/sadc" for folder in FOLDERS if self._has(f"{folder}/sadc")), None)
        if self._sadc is None:
            raise Unavailable(
                f"sysstat is not installed on host '{host.name}': install its package there, or set 'meters: "
                "{source: kernel}'"
            )
        self._running: Running | None = None
        self._begun = 0.0

    def _has(self, path: str) -> bool:
        return self._host.run(Command(("test", "-x", path), 10)).returncode == 0

    def begin(self, sites: Mapping[str, Mapping[str, str]], samplers: Samplers = NO_SAMPLERS) -> None:
        """Start ``sadc``. It does not read sites."""
        self.close()
        self._begun = time.monotonic()
        try:
            self._running = self._host.start(Command((str(self._sadc), "-S", "DISK", self._interval)))
        except (Unavailable, EnvironmentLost, OSError) as error:
            raise MeterFailed(str(error)) from error

    def end(self, since: float) -> MeterReadings:
        """End ``sadc`` and read its file."""
        running, self._running = self._running, None
        if running is None:
            raise MeterFailed("it was not started")
        try:
            sadc = running.stop()
            if not sadc.stdout:
                raise MeterFailed(f"sadc wrote nothing: {sadc.last_words}")
            argv = ("sh", "-c", _SADF, "sadf", "-u", "ALL", "-r", "-n", "DEV", "-d")
            sadf = self._host.run(Command(argv, 30, {"LC_ALL": "C"}, sadc.stdout))
        except EnvironmentLost as error:
            raise MeterFailed(str(error)) from error
        if sadf.returncode != 0 and b'"timestamp"' not in sadf.stdout:
            return MeterReadings(())  # too short for one interval, so sadf prints nothing
        return MeterReadings(series(sadf.stdout, host_place(self._host.name), self._begun - since))

    def close(self) -> None:
        """End a running ``sadc``."""
        running, self._running = self._running, None
        if running is not None:
            with contextlib.suppress(EnvironmentLost):  # it ended together with its host
                running.stop()


def series(text: bytes, place: str, offset_s: float = 0.0) -> tuple[Series, ...]:
    """Return the series in the output of ``sadf -j FILE -- -u ALL -r -n DEV -d``.

    ``offset_s`` is the time when ``sadc`` was started. Raises MeterFailed for any other text. sysstat rounds values
    to hundredths and times to seconds.
    """
    points: dict[str, tuple[list[float], list[float]]] = {}
    at = offset_s
    try:
        (host,) = json.loads(text)["sysstat"]["hosts"]
        cpus = int(host["number-of-cpus"])
        for record in host["statistics"]:
            if "timestamp" not in record:  # a restart of the machine, a comment
                continue
            at += float(record["timestamp"]["interval"])
            for name, value in _values(record, cpus):
                times, values = points.setdefault(name, ([], []))
                times.append(round(at, 4))
                values.append(float(value))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise MeterFailed(f"sadf's output cannot be read ({type(error).__name__})") from error
    return tuple(Series(place, name, tuple(times), tuple(values)) for name, (times, values) in points.items())


def _values(record: Mapping[str, Any], cpus: int) -> Iterator[tuple[str, float]]:
    for line in record.get("cpu-load", ()):
        if line["cpu"] == "all":
            for kind, names in _CPU.items():
                if names[0] in line:
                    yield f"cpu_{kind}_share", sum(line.get(name, 0.0) for name in names) / 100 * cpus
    memory = record.get("memory", {})
    yield from ((f"memory_{name}_bytes", memory[key] * KIB) for key, name in _MEMORY.items() if key in memory)
    for line in record.get("network", {}).get("net-dev", ()):
        yield from ((f"{line['iface']}_{name}", line[key] * unit) for key, (name, unit) in _NETWORK.items())
    for line in record.get("disk", ()):
        yield from ((f"disk_{line['disk-device']}_{name}", line[key] * unit) for key, (name, unit) in _DISK.items())
