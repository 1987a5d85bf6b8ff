"""The life of a site for real: commands in one that is open, cold starts, bursts, published ports, idle sites."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.hosts.local import LocalHost
from weighbridge.launcher.within import within
from weighbridge.model.command import Command
from weighbridge.model.host import Limits
from weighbridge.model.openings import Opened
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland
from weighbridge.runner.routes import fresh_ports

from .conftest import open_run
from .machine import Machine
from .weighing import DOCKER, NATIVE, Row, trials, weighbridge, write_study

RUN = "6e6e6e6e6e6e"
PODMAN = "podman: {kind: podman}"
SANDBOX = "sandbox: {kind: bubblewrap}"
ENTERED = {
    "netns": ("nsenter", "space: {kind: netns}"),
    "bubblewrap": ("bwrap", SANDBOX),
    "docker": ("docker", DOCKER),
    "podman": ("podman", PODMAN),
}
"""Kinds of sites that the host enters, each with its program and its entry in a study."""
NAMESPACES = ("readlink", *(f"/proc/self/ns/{kind}" for kind in ("mnt", "net", "pid", "ipc")))


def measured(tmp_path: Path, environments: tuple[str, ...], *workloads: str) -> Iterator[tuple[Row, bytes]]:
    """The trials of one round, each with the output of its measured process."""
    study, run = write_study(tmp_path, environments=environments, workloads=workloads, blocks=1), tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    for row in trials(run):
        assert row["outcome"] == "ok", row
        yield row, (run / f"raw/{row['id']:06d}.solo.stdout").read_bytes()


def openings(tmp_path: Path, environments: tuple[str, ...], *workloads: str) -> dict[tuple[str, str, str], Opened]:
    """The record of each trial's openings, by environment, workload and level."""
    return {
        (row["environment"], row["workload"], row["level"]): Opened.model_validate_json(printed)
        for row, printed in measured(tmp_path, environments, *workloads)
    }


@pytest.mark.parametrize("kind", ENTERED)
def test_commands_in_an_open_site_take_longer_than_natively(machine: Machine, tmp_path: Path, kind: str):
    program, environment = ENTERED[kind]
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    fastest = {}
    for row, printed in measured(tmp_path, (NATIVE, environment), "do: {kind: exec, commands: 3}"):
        lines = printed.decode().splitlines()
        assert len(lines) == 4 and lines[-1].startswith("starts 3 own ")
        times = [(int(line.split()[1]), int(line.split()[3])) for line in lines[:3]]
        assert all(0 < output <= end for output, end in times)
        fastest[row["environment"]] = min(end for _, end in times)
    (other,) = {*fastest} - {"native"}
    assert fastest[other] > fastest["native"], "the entering program starts first"
    machine.must_be_unchanged()


@pytest.mark.parametrize("kind", ENTERED)
def test_a_command_is_where_the_programs_of_the_site_are(machine: Machine, small_userland: Userland, kind: str):
    program, _ = ENTERED[kind]
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    environment = registry.environments()[kind]
    with open_run(RUN) as run:
        limits = Limits(cpus=0.5, memory=2**27)
        request = SiteRequest(run, LocalHost(run.id), f"{kind}-server", "server", small_userland, limits)
        site = run.stack.enter_context(environment.open(environment.options(), request))
        entry = site.entering()
        assert entry is not None and entry.words
        words = within(site.host, run, entry.group, *entry.words)

        def there(*argv: str) -> str:
            done = site.host.run(Command((*words, *argv), 60))
            assert done.returncode == 0, done
            return done.text

        assert there(*NAMESPACES) == site.run(Command(NAMESPACES)).text
        own = Path("/proc/self/ns/mnt").readlink()
        assert str(own) not in there(*NAMESPACES)
        groups = ("cat", "/proc/self/cgroup")
        memory = [_group(text, "memory") for text in (there(*groups), site.run(Command(groups)).text)]
        assert memory[0] == memory[1], "it is under the limits of the site"
    machine.must_be_unchanged()


def _group(text: str, controller: str) -> str:
    lines = (line.split(":", 2) for line in text.splitlines())
    return next(path for _, names, path in lines if controller in names.split(",") or not names)


def test_starts_cold_with_neighbours_and_with_ports(machine: Machine, tmp_path: Path):
    found = openings(
        tmp_path,
        (NATIVE, SANDBOX, DOCKER),
        "cold: {kind: boot, sites: 2, duration: 0s, cold: true}",
        "crowd: {kind: boot, sites: 2, duration: 0s, running: 2}",
        "ports: {kind: boot, sites: 2, duration: 0s, ports: [0, 4]}",
    )
    assert len(found) == 12
    for (environment, *_), opened in found.items():
        assert len(opened.openings) == 2 and all(each.close_s for each in opened.openings)
        phases = {"create", "start", "answer"} if environment == "bridge" else set()
        for each in opened.openings:
            assert {*each.phases} == phases
            assert sum(each.phases.values()) <= each.open_s
    machine.must_be_unchanged()


def test_podman_knows_its_phases_and_publishes_ports(machine: Machine, tmp_path: Path):
    if shutil.which("podman") is None:
        pytest.skip("needs podman")
    found = openings(tmp_path, (NATIVE, PODMAN), "ports: {kind: boot, sites: 2, duration: 0s, ports: 2}")
    assert {environment: {*each.openings[0].phases} for (environment, *_), each in found.items()} == {
        "native": set(),
        "podman": {"create", "start"},
    }
    machine.must_be_unchanged()


def test_ports_of_fresh_containers_are_published(machine: Machine, small_userland: Userland):
    """A process of the engine listens to each port while the site is open."""
    environment = registry.environments()["docker"]
    with open_run(RUN) as run:
        host = LocalHost(run.id)
        first = SiteRequest(run, host, "bridge-server", "server", small_userland, Limits())
        run.stack.enter_context(environment.open(environment.options(), first))
        ports = fresh_ports(host, 3)
        request = SiteRequest(
            run, host, "bridge-1-server", "server", small_userland, Limits(), ports, joined_site="bridge-server"
        )
        with environment.open(environment.options(), request):
            listening = _listening()
            assert {port.reached for port in ports} <= listening
        assert not {port.reached for port in ports} & _listening()
    machine.must_be_unchanged()


def _listening() -> set[int]:
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    sockets: list[Any] = [line.split() for line in lines]
    return {int(each[1].rpartition(":")[2], 16) for each in sockets if each[3] == "0A"}


def test_bursts_answer_together(machine: Machine, tmp_path: Path):
    found = openings(tmp_path, (NATIVE, SANDBOX, DOCKER), "burst: {kind: burst, at_once: 4, duration: 0s}")
    assert {environment for environment, *_ in found} == {"native", "sandbox", "bridge"}
    for opened in found.values():
        assert len(opened.openings) == 4 and all(each.close_s is not None for each in opened.openings)
    told = json.loads(weighbridge("report", tmp_path / "run", "--json").stdout)
    assert {"time_to_last", "time_to_median"} <= {each["metric"] for each in told["costs"]}
    machine.must_be_unchanged()
