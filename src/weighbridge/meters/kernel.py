"""The meter that reads the kernel's files: one sampler on a host, and the conversation with it."""

import contextlib
import json
import time
from collections.abc import Mapping
from pathlib import Path

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.meters import sampler
from weighbridge.meters.meter import MeterFailed, Taken
from weighbridge.meters.readings import unpack
from weighbridge.meters.scopes import order
from weighbridge.meters.series import series
from weighbridge.model.command import Command
from weighbridge.model.site import Host, HostProcess

ANSWER_S = 10.0
"""How long the sampler may take to answer."""
AFRESH = 32 * 2**20
"""Bytes of answers after which a new sampler is started: they are kept in a file until it ends."""


class KernelMeter:
    """Reads ``hz`` times a second while a trial runs. Implements ``Meter``. A sampler that ended is started again."""

    def __init__(self, host: Host, hz: float) -> None:
        self._host, self._hz = host, hz
        self._process: HostProcess | None = None
        self._heard = 0
        self._begun: float | None = None
        with contextlib.suppress(MeterFailed):  # begin tries again, and its failure is told
            self._start()

    def _start(self) -> HostProcess:
        self.close()
        source = Path(sampler.__file__).read_text()
        try:
            self._process = self._host.start(Command((self._host.python, "-I", "-S", "-c", source)), hold=True)
        except (Unavailable, EnvironmentLost, OSError) as error:
            raise MeterFailed(str(error)) from error
        self._heard = 0
        return self._process

    def begin(self, sites: Mapping[str, Mapping[str, str]]) -> None:
        """Begin to read the host's files and those of the sites."""
        process = self._process
        if process is None or self._begun is not None or self._heard > AFRESH or self._ended(process):
            process = self._start()
        self._begun = time.monotonic()
        answer = self._ask(process, {"do": "begin", "hz": self._hz, **order(self._host.name, sites)})
        if not answer.startswith(b'{"begun"'):
            raise MeterFailed(f"it answered {answer[:80]!r}")

    def end(self, since: float) -> Taken:
        """Every series of the host and its sites, and what reading them cost."""
        if self._process is None or self._begun is None:
            raise MeterFailed("it was not begun")
        readings = unpack(self._ask(self._process, {"do": "end"}))
        offset, self._begun = self._begun - since, None
        return Taken(series(readings, offset), readings.own_cpu_s)

    def _ask(self, process: HostProcess, message: Mapping[str, object]) -> bytes:
        """One line for one line."""
        deadline, pause = time.monotonic() + ANSWER_S, 0.0002
        try:
            process.send(json.dumps(message).encode() + b"\n")
            while not (answer := process.output_so_far(self._heard)).endswith(b"\n"):
                if process.poll() is not None:
                    raise MeterFailed(f"its process ended: {process.stop().last_words}")
                if time.monotonic() > deadline:
                    raise MeterFailed(f"its process did not answer within {ANSWER_S:g} s")
                time.sleep(pause)
                pause = min(0.005, pause * 1.5)
        except (EnvironmentLost, OSError) as error:
            raise MeterFailed(f"its process is gone: {error}") from error
        self._heard += len(answer)
        return answer

    @staticmethod
    def _ended(process: HostProcess) -> bool:
        try:
            return process.poll() is not None
        except EnvironmentLost:
            return True

    def close(self) -> None:
        """End the sampler."""
        process, self._process, self._begun = self._process, None, None
        if process is not None:
            with contextlib.suppress(EnvironmentLost):  # with its host it has gone too
                process.stop()
