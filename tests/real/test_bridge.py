"""The bridge of a run: its ports reach one another whatever a Docker engine's packet filter does; nothing is left."""

import os
import subprocess
import sys
import time

import pytest

from weighbridge.errors import Unavailable
from weighbridge.hosts.bridge import Bridge, bridge_of
from weighbridge.hosts.local import LocalHost
from weighbridge.linux import links
from weighbridge.linux.process import link_prefix
from weighbridge.model.command import Command
from weighbridge.model.host import RunContext
from weighbridge.runner import clean
from weighbridge.runner import run_lock as state

from .conftest import open_run
from .machine import Machine

RUN = "b41d6eb41d6e"


def told(host: LocalHost, *argv: str) -> int:
    return host.run(Command(argv, 20)).returncode


def ends(run: RunContext, host: LocalHost, bridge: Bridge) -> list[tuple[str, str]]:
    """Two network namespaces with an address each, as ports of the bridge: (pid, address)."""
    made = []
    for _ in range(2):
        holder = host.start(Command(("unshare", "--net", "sh", "-c", "echo up; exec cat")), hold=True)
        run.stack.callback(holder.stop)
        while not holder.output_so_far():
            time.sleep(0.01)
        address = run.stack.enter_context(bridge.joined(holder.pid))
        made.append((str(holder.pid), address))
    return made


def reaches(host: LocalHost, pid: str, address: str) -> bool:
    """Whether a TCP connection to a closed port is refused there: then a packet came back."""
    script = (
        "import socket, sys\ns = socket.socket(); s.settimeout(2)\n"
        "try: s.connect((sys.argv[1], 9))\nexcept ConnectionRefusedError: sys.exit(0)\nsys.exit(1)"
    )
    wrap = ("nsenter", "--target", pid, "--net", "--") if pid else ()
    return host.run(Command((*wrap, sys.executable, "-c", script, address), 10)).returncode == 0


def test_ports_reach_one_another_where_an_engine_drops_what_is_forwarded(machine: Machine):
    with open_run(RUN) as run:
        host = LocalHost(run.id)
        bridge = bridge_of(run, host)
        assert bridge_of(run, host) is bridge
        (one, first), (_, second) = ends(run, host, bridge)
        assert reaches(host, "", first) and reaches(host, one, bridge.gateway)
        drop = ("FORWARD", "-i", bridge.name, "-j", "DROP")  # as an engine's policy, but for our own frames alone
        assert told(host, "iptables", "--wait", "-A", *drop) == 0
        try:
            assert reaches(host, "", first) and reaches(host, one, bridge.gateway), "those are not forwarded"
            assert not reaches(host, one, second), "br_netfilter is not in force here: this test would show nothing"
            bridge.let_ports_pass()
            assert reaches(host, one, second)
        finally:
            assert told(host, "iptables", "--wait", "-D", *drop) == 0
        assert [run for run, _ in links.rules() if run == RUN] == [RUN]
    assert not links.rules()


def test_a_link_that_is_not_ours_is_left_alone(machine: Machine):
    name = f"{link_prefix(RUN)}b0"
    with open_run(RUN) as run:
        host = LocalHost(run.id)
        assert told(host, "ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}1") == 0
        try:
            with pytest.raises(Unavailable, match=name):
                bridge_of(run, host)
            assert told(host, "ip", "link", "show", name) == 0
        finally:
            assert told(host, "ip", "link", "delete", name) == 0


KILLED = """
import os, signal
from weighbridge.hosts.bridge import bridge_of
from weighbridge.hosts.local import LocalHost
from tests.real.conftest import open_run
with open_run("b41d6eb41d6e") as run:
    bridge_of(run, LocalHost(run.id)).let_ports_pass()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_clean_removes_link_and_rule(machine: Machine):
    subprocess.run([sys.executable, "-c", KILLED], env={**os.environ, "PYTHONPATH": "."}, check=False, timeout=60)
    kinds = {leftover.kind for leftover in clean.find().left if leftover.run == RUN}
    assert {"network link", "packet filter rule", "state folder"} <= kinds
    with state.lock_run(RUN, "clean") as folder:
        assert folder is not None
        clean.sweep(RUN)
        state.forget(RUN)
    assert not [leftover for leftover in clean.find().left if leftover.run == RUN]
