"""Whether Weighbridge runs in a container: an engine's mark and layers, and what it lacks of the machine."""

import os
from pathlib import Path

import pytest

from weighbridge.linux import own_container
from weighbridge.linux.folders import Mounted
from weighbridge.runner import preflight, run_lock


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root folder made of layers, whose process has namespaces of its own and a filter."""
    monkeypatch.setattr(own_container, "_ROOT", tmp_path)
    monkeypatch.setattr(own_container, "mount_table", lambda: [Mounted("/", "overlay"), Mounted("/proc", "proc")])
    for name in ("1", "self"):
        (tmp_path / "proc" / name / "ns").mkdir(parents=True)
        for namespace in ("pid", "cgroup", "net"):
            (tmp_path / "proc" / name / "ns" / namespace).touch()
    (tmp_path / "proc/self/status").write_text("NoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n")
    return tmp_path


def test_a_mark_and_layers_are_a_container(root: Path, monkeypatch: pytest.MonkeyPatch):
    assert own_container.engine() == ""
    (root / ".dockerenv").touch()
    assert own_container.engine() == "Docker"
    monkeypatch.setattr(own_container, "mount_table", lambda: [Mounted("/", "ext4"), Mounted("/var", "overlay")])
    assert own_container.engine() == "", "an image of a whole machine"


def test_what_is_kept_from_it_is_told_by_the_engine_s_options(root: Path, monkeypatch: pytest.MonkeyPatch):
    (root / ".dockerenv").touch()
    ready = preflight.checks()[own_container.FACT]
    assert not ready.ready
    states = f"-v {run_lock.ROOTS}:{run_lock.ROOTS}"
    assert ready.remedy == f"start the container with --privileged --pid host --cgroupns host --network host {states}"
    first = {name: (root / "proc/self/ns" / name).stat().st_ino for name in ("pid", "cgroup")}
    monkeypatch.setattr(own_container, "_FIRST", first)
    assert own_container.missing_options(run_lock.ROOTS) == ["--privileged", "--network host", states]
    for name in ("1", "self"):
        (root / "proc" / name / "ns/net").unlink()
        os.link(root / "proc/self/status", root / "proc" / name / "ns/net")
    (root / "proc/self/status").write_text("Seccomp:\t0\n")
    mounts = [Mounted("/", "overlay"), Mounted(str(run_lock.ROOTS), "tmpfs")]
    monkeypatch.setattr(own_container, "mount_table", lambda: mounts)
    assert own_container.missing_options(run_lock.ROOTS) == [] and preflight.checks()[own_container.FACT].ready


def test_the_machine_s_own_programs_are_run_where_its_processes_are_seen(root: Path, monkeypatch: pytest.MonkeyPatch):
    stop = ("systemctl", "stop", "a.slice")
    assert own_container.by_machine(stop) == stop
    (root / ".dockerenv").touch()
    assert own_container.by_machine(stop) == stop, "its first process is not the machine's"
    first = {name: (root / "proc/self/ns" / name).stat().st_ino for name in ("pid", "cgroup")}
    monkeypatch.setattr(own_container, "_FIRST", first)
    assert own_container.by_machine(stop) == ("nsenter", "--target", "1", "--mount", *stop)
