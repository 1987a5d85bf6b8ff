"""One power cut under a database: its clients commit records, its disk's host is killed, and it is started again."""

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.model.command import Command
from weighbridge.model.host import Host
from weighbridge.model.measurement import TrialFailure
from weighbridge.model.power_cut import ACKNOWLEDGED, Ledger, ReadBack, committed
from weighbridge.model.site import DATA, Mount, Site, SiteRequest, SiteStorage
from weighbridge.model.study import Cell
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.runner import trial_programs
from weighbridge.runner.metering import Metering
from weighbridge.runner.power_cut import Writer, file_on, host_of, in_memory, power_of
from weighbridge.runner.stage import Stage
from weighbridge.runner.trial_state import TrialState

_RECOVER_S, _AGAIN_S = 120.0, 0.5
_ERROR = re.compile(r"\b(?:PANIC|FATAL|ERROR)\b(?![^\n]*starting up)[^\n]*")
_LOOPBACK = Endpoint("127.0.0.1", "127.0.0.1", 0, "127.0.0.1")


@dataclass(frozen=True, slots=True)
class Server:
    """A workload's server that is checked, and the clients that commit to it."""

    workload: Workload
    options: Any
    at: Endpoint
    ledger: Ledger

    @classmethod
    def of(cls, kind: str, options: Any, host: Host) -> "Server":
        """That of a workload which has one whose commits can be counted; on a port of the host that is free."""
        workload, at = registry.workloads()[kind], replace(_LOOPBACK, port=host.free_ports(()))
        ledger = workload.ledger(options, at)
        assert ledger is not None
        return cls(workload, options, at, ledger)

    def begin(self, site: Site, state: TrialState) -> None:
        """Make its data, as before a trial, and start it. Raises TrialFailure."""
        stage = Stage({"server": site}, {"server": self.at}, {})
        trial_programs.prepare(self.workload, self.options, stage, state)
        trial_programs.serve(self.workload.command("server", self.options, self.at), site, state)

    def recover(self, site: Site, state: TrialState) -> None:
        """Start it on the data that are there. Raises TrialFailure."""
        for path, data in self.workload.files("server", self.options, self.at).items():
            site.put(path, data, self.workload.file_mode(self.options, path))
        command = self.workload.command("server", self.options, self.at)
        trial_programs.serve(command, site, state, ready_s=_RECOVER_S)


def commits(cell: Cell) -> bool:
    """Whether a workload has a server whose commits can be counted."""
    return registry.workloads()[cell.kind].ledger(cell.options, _LOOPBACK) is not None


def cut_and_recover(
    site: Site, request: SiteRequest, server: Server, seconds: float
) -> tuple[Host, int, ReadBack, str]:
    """Commit for so many seconds, cut the power, start the server again, and count.

    Gives whose power it was, how many commits were acknowledged, what is there of them, and why the server did not
    tell, if it did not. The server is started again natively on that host, on the folder that its storage had there.
    Raises Unavailable where the power or the data cannot be reached, or nothing was committed.
    """
    assert request.storage is not None
    host = host_of(site, request.storage.mounts)
    power = power_of(host)
    marker = f"weighbridge-powercut-{secrets.token_hex(8)}"
    site.thaw()
    try:
        server.begin(site, _state())
        marked = site.run(Command(("touch", f"{DATA}/{marker}")))
    except TrialFailure as why:
        raise Unavailable(f"{server.workload.kind}: {why}") from why
    if marked.returncode != 0:
        raise Unavailable(f"nothing can be written to {DATA}: {marked.last_words}")
    folder = None if in_memory(site) else PurePosixPath(file_on(host, power, marker)).parent
    writer = Writer(site, server.ledger.write, ACKNOWLEDGED, b"\n")
    writer.begin()
    count = writer.until_cut(host, power, seconds, request.run.say)
    if folder is None:
        return host, count, committed("", count), ""
    with power.restored() as again:
        printed, failure = _read_back(replace(request, host=again), str(folder), server)
    return host, count, committed(printed, count), failure


def _read_back(request: SiteRequest, folder: str, server: Server) -> tuple[str, str]:
    """What the server's client prints of the data in a folder of the host, and why it prints nothing."""
    native = registry.the_host()
    storage = SiteStorage("directory", lambda _: nullcontext(Mount("folder", folder)))
    with native.open(native.options(), replace(request, name="1-recovered", storage=storage)) as site:
        site.thaw()
        with _ended(_state()) as state:
            try:
                server.recover(site, state)
            except TrialFailure as why:
                return "", _told(state) or str(why)
            return _asked(site, server, state)


def _asked(site: Site, server: Server, state: TrialState) -> tuple[str, str]:
    """What the client prints: one that listens may still be at its recovery, and refuse until it is done."""
    deadline = time.monotonic() + _RECOVER_S
    while (done := site.run(server.ledger.read)).returncode != 0 and time.monotonic() < deadline:
        if state.server is None or state.server.poll() is not None:
            trial_programs.stop_server(state, quietly=True)
            return "", _told(state) or done.last_words
        time.sleep(_AGAIN_S)
    return done.text, "" if done.returncode == 0 else done.last_words


def _told(state: TrialState) -> str:
    """The first of its errors that a server told of; what comes last is often a hint."""
    server = state.completed.get("server")
    told = _ERROR.search(server.stderr.decode(errors="replace")) if server is not None else None
    return told[0].strip()[:300] if told else ""


@contextmanager
def _ended(state: TrialState) -> Iterator[TrialState]:
    try:
        yield state
    finally:
        trial_programs.stop_server(state, quietly=True)


def _state() -> TrialState:
    return TrialState(Metering({}, {}, {}, time.monotonic()))
