"""Two guests as hosts on one switch: Docker's networks between them, some of which this kernel lacks, and faults."""

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import pytest

from weighbridge.linux.process import run_of
from weighbridge.runner import clean, run_lock

from .machine import Machine
from .programs import await_that
from .weighing import Going, facts, going, run_id, trials, weighbridge

NATIVE = "  native: {kind: native}\n"
NETWORKS = {
    "ipvlan": "  ipvlan: {kind: docker, network: ipvlan}\n",
    "overlay": "  overlay: {kind: docker, network: overlay}\n",
    "encrypted": "  encrypted: {kind: docker, network: overlay, encrypted: true}\n",
}
pytestmark = [  # an emulated engine takes minutes for a swarm: these take eleven
    pytest.mark.long,
    pytest.mark.promise("networks that this machine's kernel lacks are measured between two guest hosts"),
]
STUDY = """study: two-guest-hosts
question: What do ipvlan and an encrypted overlay network cost between two hosts?
hosts:
  lab: {kind: guest, memory: 768MiB, accelerator: tcg, cpus: "0"}
  peer: {kind: guest, memory: 768MiB, accelerator: tcg, cpus: "1"}
placement: {client: peer, server: lab}
inside: [server, client]
baseline: native
aa: false
meters: {source: 'off'}
workloads: {tcp: {kind: iperf3, duration: 1s}}
repetitions: {blocks: 1}
environments:
"""


def _guests(run: str) -> list[int]:
    """The processes of QEMU that a run has."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if run_of(folder) == run and (folder / "comm").read_text().startswith("qemu"):
                found.append(int(folder.name))
    return sorted(found)


@pytest.mark.parametrize("networks", [("ipvlan",), tuple(NETWORKS)], ids=["ipvlan", "and overlays"])
def test_docker_s_networks_between_them(machine: Machine, tmp_path: Path, networks: tuple[str, ...]):
    study = tmp_path / "study.yaml"
    study.write_text(STUDY + NATIVE + "".join(NETWORKS[name] for name in networks))
    out = tmp_path / "run"
    with going("run", study, "--yes", "--out", out, files=tmp_path) as run:
        code = run.process.wait(1200)
    assert code == 0, run.told()
    assert {row["environment"] for row in trials(out)} == {"native", *networks}
    assert {row["outcome"] for row in trials(out)} == {"ok"}, trials(out)
    known = facts(out)
    kernels = {value for (scope, key), value in known.items() if key == "kernel" and scope.startswith("host ")}
    assert kernels and os.uname().release not in kernels
    said = weighbridge("report", out, "--json")
    assert said.code == 0, said
    report = json.loads(said.stdout)
    assert {cost["environment"] for cost in report["costs"]} == set(networks)
    layers = [{"name": "QEMU, TCG", "emulated": True}]
    for name in ("native", *networks):
        assert report["environments"][name] == {"layers": layers, "emulated": True}, report["environments"]
    page = (out / "report.html").read_text()
    assert all(f"{name} (inside QEMU, TCG: emulated)" in page for name in ("native", *networks))


def _started(run: Going, out: Path, number: int) -> list[int]:
    run.await_that(lambda: len(_guests(run_id(out))) == number, f"{number} guests")
    return _guests(run_id(out))


def test_one_of_them_dies_in_a_trial_and_then_weighbridge(machine: Machine, tmp_path: Path):
    study = tmp_path / "study.yaml"
    study.write_text(STUDY.replace("duration: 1s", "duration: 600s") + NATIVE)
    out = tmp_path / "run"
    with going("run", study, "--yes", "--out", out, files=tmp_path) as run:
        first = _started(run, out, 1)
        [second] = {*_started(run, out, 2)} - {*first}
        run.await_text("trials done")
        time.sleep(3)
        os.kill(second, signal.SIGKILL)
        ended = run.end()
    assert ended.code != 0 and "Traceback" not in ended.stderr, ended
    assert "lost the connection to host peer: its guest ended" in ended.stderr
    mine = run_id(out)
    assert not _guests(mine)

    with going("run", "--yes", "--out", out, files=tmp_path) as run:
        _started(run, out, 2)
        run.end(signal.SIGKILL)
    await_that(lambda: not _guests(mine))  # they end by themselves
    assert [left for left in clean.find().left if left.run == mine]  # their disks
    clean.sweep(mine)
    run_lock.forget(mine)
    assert not [left for left in clean.find().left if left.run == mine]
