"""What a study asks for that this machine has not."""

import os
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.linux.memory_room import Room
from weighbridge.model.plugin import Readiness
from weighbridge.runner import preflight as machine
from weighbridge.runner import readiness
from weighbridge.runner import run as running
from weighbridge.runner.run import refusals
from weighbridge.study.loader import check, with_blocks
from weighbridge.study.source import parse

START = "study: s\nquestion: q\nbaseline: n\nenvironments: {n: {kind: native}}\n"
TCP = "workloads: {tcp: {kind: iperf3}}\n"


@pytest.mark.parametrize(
    ("more", "about"),
    [
        ("resources: {pin: {server: '1', client: '0'}}", []),
        ("resources: {pin: {server: '0-1', client: '0,7'}}", ["resources: pin: client: CPU 7"]),
        ("hosts: {a: {kind: testbed, cpus: '0-3'}}", ["hosts: a: cpus: CPU 2"]),
        ("hosts: {a: {kind: ssh, destination: a}}\nresources: {pin: {server: '7'}}", []),  # it may have that one
        ("resources: {cpus: 3}", ["resources: cpus: 3"]),
        ("resources: {memory: 900000GiB}", ["resources: memory: 921600000 MiB is more than this machine has ("]),
    ],
)
def test_cpus_that_are_not_here_are_told_before_the_run(monkeypatch: pytest.MonkeyPatch, more: str, about: list[str]):
    monkeypatch.setattr(machine, "cpus_online", lambda: [0, 1])
    study = check(parse(START + TCP + more, "a.yaml"))
    told = machine.missing_cpus(study) + machine.warnings(study)
    assert len(told) == len(about)
    assert all(text.startswith(start) for text, start in zip(told, about, strict=True))


@pytest.mark.parametrize(
    ("user", "lacks", "resources", "told"),
    [
        (0, "w", "{cpus: 1}", []),
        (1000, "", "{cpus: 1}", []),
        (1000, "w", "{}", []),
        (1000, "w", "{cpus: 1, memory: 1GiB}", ["resources: cpus, memory: no limit in effect in n, n-again: w"]),
    ],
)
def test_limits_that_a_user_cannot_set_are_told_before_the_run(
    monkeypatch: pytest.MonkeyPatch, user: int, lacks: str, resources: str, told: list[str]
):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(machine.delegation, "lacking", lambda: lacks)
    environments = "environments: {n: {kind: native}, d: {kind: docker}}"
    text = START.replace("environments: {n: {kind: native}}", environments) + f"{TCP}resources: {resources}"
    assert machine.warnings(check(parse(text, "a.yaml"))) == told


HOSTS = """\
hosts: {a: {kind: guest, memory: MEMORY}, b: {kind: guest, memory: 512MiB}}
placement: {client: a, server: b}
inside: [client, server]
"""


def refused(text: str) -> list[str]:
    study = check(parse(text, "a.yaml"))
    return refusals(study, dict.fromkeys((arm.name for arm in study.arms), Readiness(True)))


def test_hosts_that_cannot_be_had_are_told_before_the_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(readiness, "lacking_here", lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert refused(START + TCP + HOSTS.replace("MEMORY", "512MiB")) == []
    (why,) = refused(START + TCP + HOSTS.replace("MEMORY", "921600GiB"))
    assert why.startswith("a.yaml:6: host a: a guest of 943718400 MiB of memory has no room on this machine, where ")
    assert why.endswith(": give it less memory")
    monkeypatch.setattr(readiness, "room_in", lambda _: Room(800 * 2**20))  # room for one of them
    (why,) = refused(START + TCP + HOSTS.replace("MEMORY", "512MiB"))
    assert "host a: a guest of 512 MiB" in why and "512 MiB of them for other guests" in why
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert refused(START + TCP + HOSTS.replace("MEMORY", "512MiB")) == [
        f"a.yaml:6: host {name}: only root may make guest hosts: run as root" for name in "ba"
    ]


NFS = """\
study: nfs
question: What does NFS cost?
hosts: {a: {kind: A}, b: {kind: B}}
placement: {client: a, server: a, storage: b}
environments: {n: {kind: native, storage: {kind: nfs, version: 4.2}}}
baseline: n
workloads: {cpu: {kind: sysbench-cpu}}
repetitions: {blocks: 1}
"""


@pytest.mark.parametrize(("site", "store"), [("testbed", "testbed"), ("testbed", "guest"), ("guest", "testbed")])
def test_storage_that_this_machine_s_kernel_would_serve_is_refused(
    monkeypatch: pytest.MonkeyPatch, site: str, store: str
):
    monkeypatch.setattr(type(registry.environments()["native"]), "readiness", lambda *_: Readiness(True))
    study = check(parse(NFS.replace("kind: A", f"kind: {site}").replace("kind: B", f"kind: {store}"), "a"))
    states = running.readiness_of(study)
    assert not any(state.ready for state in states.values())
    assert all("kind: guest" in state.remedy for state in states.values())


def test_storage_on_guests_is_not_asked_of_this_machine():
    study = check(parse(NFS.replace("kind: A", "kind: guest").replace("kind: B", "kind: guest"), "a"))
    assert all(state.ready for state in running.readiness_of(study).values())
    placed = study.file.hosts["b"].model_copy(update={"memory": 900 * 2**40})
    crowded = study.model_copy(
        update={"file": study.file.model_copy(update={"hosts": {**study.file.hosts, "b": placed}})}
    )
    assert not readiness.hosts_readiness(crowded)["b"].ready


def test_what_this_machine_lacks_names_its_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(running, "ready", lambda *_: Readiness(True))
    docker = "{kind: docker, network: macvlan, parent: nosuch0}"
    study = check(
        parse(START.replace("native}}", f"native}}, x: {docker}}}") + TCP + "inside: [client, server]\n", "a")
    )
    states = running.readiness_of(study)
    assert {name: state.ready for name, state in states.items()} == {"n": True, "x": False, "n-again": True}
    (why,) = refusals(study, states)
    assert why.startswith("a:4: x: parent: this machine has no network interface 'nosuch0': name one that it has: ")
    fewer = with_blocks(study, 3)
    assert refusals(fewer, states) == [why], "its lines are those of the file"


def test_of_a_study_that_a_run_has_kept_no_lines_are_known():
    study = check(parse(START + TCP, "a"))
    lacking = {
        "n": Readiness(False, "it is broken", "mend it"),
        "n-again": Readiness(False, "it is broken", "mend it"),
    }
    assert refusals(study, lacking) == ["a:4: n, n-again: it is broken: mend it"]
    assert refusals(study.model_copy(update={"lines": {}}), lacking) == ["n, n-again: it is broken: mend it"]


def test_a_cache_that_cannot_be_written_is_no_ready_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path / "not" / "yet"))
    assert machine.checks()["disk"].ready
    monkeypatch.setattr(os, "access", lambda path, how: path != tmp_path)
    found = machine.checks()["disk"]
    assert not found.ready and str(tmp_path) in found.detail and "WEIGHBRIDGE_CACHE" in found.remedy


def test_what_may_refuse_traffic_or_files_is_told_where_it_is_in_force(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine.selinux, "state", lambda: "")
    monkeypatch.setattr(machine.firewalld, "runs", lambda: False)
    assert not {"SELinux", "firewalld"} & set(machine.checks())
    monkeypatch.setattr(machine.selinux, "state", lambda: "enforcing")
    monkeypatch.setattr(machine.firewalld, "runs", lambda: True)
    checks = machine.checks()
    assert checks["SELinux"].ready and "label=disable" in checks["SELinux"].detail
    assert checks["firewalld"].ready and "zones" in checks["firewalld"].detail
