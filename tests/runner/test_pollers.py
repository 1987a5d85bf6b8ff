"""When idle CPUs are to poll, and what happens where they cannot."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.model.host import HostTraits
from weighbridge.runner.pollers import _only_idle_time, lacking, wants_polling


def asking(cpu_idle: str, *here: bool) -> Any:
    """A study file with hosts that are on this machine, or not."""
    traits = [HostTraits(here=each) for each in here or (True,)]
    hosts = {f"host{number}": SimpleNamespace(traits=each) for number, each in enumerate(traits)}
    return SimpleNamespace(cpu_idle=cpu_idle, hosts=hosts)


def test_auto_polls_where_a_hypervisor_has_the_cpus_of_all_hosts(tmp_path: Path):
    virtual, real = tmp_path / "virtual", tmp_path / "real"
    for machine, flags in ((virtual, "fpu hypervisor lahf_lm"), (real, "fpu lahf_lm")):
        (machine / "proc").mkdir(parents=True)
        (machine / "proc/cpuinfo").write_text(f"processor\t: 0\nmodel name\t: a hypervisor\nflags\t\t: {flags}\n")
    assert wants_polling(asking("auto"), virtual) and not wants_polling(asking("auto"), real)
    assert not wants_polling(asking("auto", True, False), virtual)
    assert wants_polling(asking("poll"), real) and not wants_polling(asking("halt"), virtual)


@pytest.mark.parametrize(
    ("uid", "release", "quota", "words"),
    [
        (0, "6.1.0-18-amd64", "max 100000\n", ""),
        (0, "5.15.0", "", ""),
        (1000, "6.1.0", "", "it needs root"),
        (0, "5.10.0-30-amd64", "", "it needs Linux 5.15"),
        (0, "unreadable", "", "it needs Linux 5.15"),
        (0, "6.1.0", "150000 100000\n", "a container, and polling would use up its CPU limit"),
    ],
)
def test_why_idle_cpus_cannot_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, release: str, quota: str, words: str
):
    monkeypatch.setattr("os.geteuid", lambda: uid)
    if quota:
        (tmp_path / "cpu.max").write_text(quota)
    told = lacking(release, tmp_path)
    assert words in told and bool(told) == bool(words)


@pytest.mark.parametrize("controller", ["cpu", ""])
def test_the_group_and_its_parent_have_idle_time_only(tmp_path: Path, controller: str):
    (tmp_path / "run").mkdir()
    _only_idle_time(SimpleNamespace(paths={controller: tmp_path / "run"}))  # type: ignore[arg-type]
    assert [(folder / "cpu.idle").read_text() for folder in (tmp_path, tmp_path / "run")] == ["1", "1"]


def test_a_kernel_that_does_not_know_such_groups_is_told(tmp_path: Path):
    with raises_sentence(Unavailable):
        _only_idle_time(SimpleNamespace(paths={"cpu": tmp_path / "none" / "run"}))  # type: ignore[arg-type]


def test_auto_polls_on_a_virtual_machine_of_arm64(tmp_path: Path):
    for file, text in (("proc/cpuinfo", "Features\t: fp\n"), ("proc/device-tree/compatible", "linux,dummy-virt\0")):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    assert wants_polling(asking("auto"), tmp_path)
