"""What `weighbridge kit` writes, run: by Docker Compose and a shell, on a machine without a registry."""

import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weighbridge.engines.docker import engine_of
from weighbridge.features.kit.command import write
from weighbridge.features.kit.kit import kit
from weighbridge.features.replication.published import parameters_of
from weighbridge.hosts import testbed
from weighbridge.model.command import Command, Completed
from weighbridge.model.userland import Userland
from weighbridge.study.loader import check, load
from weighbridge.study.source import bundled, parse

from .conftest import open_run

STUDY = """\
study: by-hand
question: Do the scripts of a kit run?
inside: {inside}
resources: {{memory: 256MiB, cpus: 1, pin: spread}}
aa: false
baseline: native
environments:
  native:    {{kind: native}}
  host:      {{kind: docker, network: host}}
  bridge:    {{kind: docker, network: bridge, seccomp: unconfined}}
  published: {{kind: docker, network: bridge, publish: true}}
  macvlan:   {{kind: docker, network: macvlan, parent: eth0}}
workloads:
  tcp:   {{kind: iperf3, amount: 16MiB}}
  redis: {{kind: redis-benchmark, tests: set, requests: 2000, clients: 4}}
  cpu:   {{kind: sysbench-cpu, count: 100}}
repetitions: {{blocks: 2}}
"""
PROGRAMS = ("iperf3", "redis-server", "redis-benchmark", "sysbench")


COMPOSE = [("docker-compose",), ("docker", "compose")]
"""Version 1, which Debian 12 has, and version 2, the engine's plug-in, which Docker's own packages bring."""


def in_a_kit(name: str) -> bool:
    """Whether a study has a container of the userland that it names for all: a kit has one image."""
    return any(arm.declared and arm.kind == "docker" and arm.userland is None for arm in load(name).arms)


def keys_of(file: Path) -> set[str]:
    """The keys of a Compose file."""
    return {*re.findall(r"^ *(?:- )?(\w+):", file.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("compose", COMPOSE, ids=" ".join)
def test_docker_compose_takes_the_files_of_the_bundled_studies(compose: tuple[str, ...], tmp_path: Path):
    """Enough files to have every two keys that stand in one file: Docker Compose takes a second for each."""
    asked = (*compose, "version")
    if shutil.which(compose[0]) is None or subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip(f"'{' '.join(compose)}' is not installed")
    for name in filter(in_a_kit, bundled()):
        write(kit(load(name), parameters_of(name)), tmp_path / name)
    files = sorted(tmp_path.glob("*/environments/*/compose.yaml"))
    pairs = {file: {*itertools.combinations(sorted(keys_of(file)), 2)} for file in files}
    left = set().union(*pairs.values())
    assert len(left) > 300
    while left:
        file = max(files, key=lambda each: len(pairs[each] & left))
        left -= pairs[file]
        argv = (*compose, "--env-file", "../../.env", "config", "-q")
        completed = subprocess.run(argv, cwd=file.parent, capture_output=True, text=True, timeout=60, check=False)
        assert (completed.returncode, completed.stdout, completed.stderr) == (0, "", ""), file


RunScript = Callable[..., Completed]
"""Runs a script of a folder on such a machine: the folder, the script, its arguments, variables by name."""


@pytest.fixture(scope="module")
def run_script(userland: Userland, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunScript]:
    """On a machine that has the programs and an engine with them as an image, but no registry: a testbed host."""
    programs = tmp_path_factory.mktemp("programs")
    for name in PROGRAMS:
        (programs / name).write_text(f'#!/bin/sh\nexec chroot {userland.root} {name} "$@"\n')
        (programs / name).chmod(0o755)
    options = testbed.TestbedOptions.model_validate({"kind": "testbed"})
    with open_run("0b1a2d0f0e12") as run, testbed.testbed_host("kit", options, run) as host:
        engine = engine_of(run, host)
        image = engine.image(userland)
        engine.client.swarm.init(advertise_addr="127.0.0.1")
        variables = {"PATH": f"{programs}:{os.environ['PATH']}", "DOCKER_HOST": "unix:///run/docker.sock"}

        def script(folder: Path, name: str, *arguments: str, **more: str) -> Completed:
            given = {**variables, "IMAGE": image, "PAUSE": "0", "SERVER_CPUS": "0", "CLIENT_CPUS": "0", **more}
            settings = (f"{key}={value}" for key, value in given.items())
            return host.run(Command(("env", *settings, str(folder / name), *arguments), 900))

        yield script
        client = engine.client
        networks = [each.name for each in client.networks.list() if each.name.startswith("kit-")]
        assert (client.containers.list(all=True), networks, client.volumes.list()) == ([], [], [])


def test_the_scripts_of_a_kit_run(run_script: RunScript, tmp_path: Path):
    folder = tmp_path / "kit"
    names = ["bridge", "host", "native", "published", "macvlan"]
    write(kit(check(parse(STUDY.format(inside="[server, client]"), "by-hand.yaml"))), folder)
    completed = run_script(folder, "run.sh", "native", "bridge")
    assert completed.returncode == 0, completed.text + completed.stderr.decode()
    completed = run_script(
        folder, "run.sh", *(name for name in names if name not in ("native", "bridge")), ROUNDS="1"
    )
    assert completed.returncode == 0, completed.text + completed.stderr.decode()
    assert "iperf3\t" in (folder / "results/versions.txt").read_text()
    for environment in names:
        for number in (1, 2) if environment in ("native", "bridge") else (1,):
            file = folder / f"results/{environment}/tcp/{number:03}.out"
            assert json.loads(file.read_bytes())["end"]["sum_received"]["bits_per_second"] > 1e6, file
            assert "SET" in (folder / f"results/{environment}/redis/{number:03}.out").read_text()
            assert "events per second" in (folder / f"results/{environment}/cpu/{number:03}.out").read_text()
    summary = run_script(folder, "summary.sh")
    lines = summary.text.splitlines()
    assert lines[-1].startswith("not summarised: cpu, redis: see results/")
    rows = [line.split("\t") for line in lines[1:-1]]
    rounds = {"native": "2", "bridge": "2"}
    assert [(row[0], row[3]) for row in rows] == [
        (name, "{0} of {0}".format(rounds.get(name, "1"))) for name in sorted(names)
    ]
    assert all(float(row[4]) > 1 for row in rows)


def test_the_client_of_a_kit_may_be_outside(run_script: RunScript, tmp_path: Path):
    """What a client does is the same in every environment: only the address of its server differs."""
    folder = tmp_path / "kit"
    text = STUDY.format(inside="[server]")
    left_out = ("macvlan:", "host:", "redis:")
    text = "\n".join(line for line in text.splitlines() if not line.strip().startswith(left_out))
    write(kit(check(parse(text, "by-hand.yaml"))), folder)
    completed = run_script(folder, "run.sh", "bridge", "published", ROUNDS="1")
    assert completed.returncode == 0, completed.text + completed.stderr.decode()
    for environment in ("bridge", "published"):
        file = folder / f"results/{environment}/tcp/001.out"
        assert json.loads(file.read_bytes())["end"]["sum_received"]["bits_per_second"] > 1e6, file
        assert "events per second" in (folder / f"results/{environment}/cpu/001.out").read_text()


DATA = """\
study: data
question: Do servers find their files and their data?
inside: [server, client]
aa: false
baseline: bridge
environments:
  bridge:  {kind: docker, network: bridge}
workloads:
  mysql: {kind: mysql-oltp, threads: [1, 2], duration: 1s, warm_up: 0s, tables: 1, table_size: 1000}
  nginx: {kind: nginx-wrk, connections: 4, duration: 1s, warm_up: 0s}
repetitions: {blocks: 1}
"""


def test_servers_find_their_files_and_their_data(run_script: RunScript, tmp_path: Path):
    write(kit(check(parse(DATA, "data.yaml"))), tmp_path / "kit")
    completed = run_script(tmp_path / "kit", "run.sh", "bridge")
    assert completed.returncode == 0, completed.text + completed.stderr.decode()
    results = tmp_path / "kit/results/bridge"
    assert "queries performed" in (results / "mysql-threads-2/001.out").read_text()
    assert (results / "mysql-threads-1/001.prepare").exists()
    assert not (results / "mysql-threads-2/001.prepare").exists(), "both start from the same data"
    assert "requests" in (results / "nginx/001.out").read_text()


def test_an_overlay_network_is_made_in_a_swarm(run_script: RunScript, tmp_path: Path):
    """On a busy machine the swarm's manager may be late for the first containers: a round that fails is told."""
    text = DATA.replace("bridge", "overlay").replace("  mysql", "  # mysql")
    write(kit(check(parse(text, "overlay.yaml"))), tmp_path / "kit")
    said = run_script(tmp_path / "kit", "run.sh", ROUNDS="2").text
    assert re.search("overlay: nginx: round . of 2$", said, re.MULTILINE), said


def test_a_round_that_fails_is_told_and_the_others_go_on(run_script: RunScript, tmp_path: Path):
    write(kit(check(parse(STUDY.format(inside="[server, client]"), "by-hand.yaml"))), tmp_path / "kit")
    folder = tmp_path / "kit"
    (folder / "environments/bridge/tcp/server.sh").write_text("#!/bin/sh\nexec sleep 60\n")
    (folder / "listening.sh").write_text((folder / "listening.sh").read_text().replace("-lt 200", "-lt 2"))
    completed = run_script(folder, "run.sh", "bridge", ROUNDS="1")
    said = completed.stderr.decode()
    assert completed.returncode == 1
    assert "bridge: tcp: " in said
    assert "bridge" in said.splitlines()[-1]
    assert "events per second" in (folder / "results/bridge/cpu/001.out").read_text()


CHECKED = """\
study: checked
question: Are checks run?
aa: false
baseline: native
environments:
  native:  {kind: native}
  bridge:  {kind: docker, network: bridge}
workloads:
  good: {kind: command, run: [echo, fine], check: [grep, -q, fine], cleanup: [echo, gone]}
  bad:  {kind: command, run: [echo, wrong], check: [grep, -q, fine]}
repetitions: {blocks: 1}
"""


def test_a_check_reads_what_was_printed_and_fails_the_round(run_script: RunScript, tmp_path: Path):
    folder = tmp_path / "kit"
    write(kit(check(parse(CHECKED, "checked.yaml"))), folder)
    completed = run_script(folder, "run.sh", ROUNDS="1")
    said = completed.stderr.decode()
    for environment in ("native", "bridge"):
        results = folder / f"results/{environment}"
        assert (results / "good/001.out").read_text() == "fine\n"
        assert (results / "good/finish").read_text().endswith("gone\n")
        assert (results / "bad/001.refused").read_text() == "wrong\n" and not (results / "bad/001.out").exists()
        assert f"{environment}: bad: " in said and f"{environment}: good: round 1 of 1 failed" not in said
    assert completed.returncode == 1
