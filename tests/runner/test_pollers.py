"""When idle CPUs are to poll, and what happens where they cannot."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from weighbridge.errors import Unavailable
from weighbridge.runner.pollers import _only_idle_time, wanted


def test_auto_polls_where_a_hypervisor_has_the_cpus(tmp_path: Path):
    virtual, real = tmp_path / "virtual", tmp_path / "real"
    virtual.write_text("processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\n")
    real.write_text("processor\t: 0\nmodel name\t: a hypervisor's friend\nflags\t\t: fpu lahf_lm\n")
    assert wanted("auto", virtual) and not wanted("auto", real)
    assert wanted("poll", real) and not wanted("halt", virtual)


@pytest.mark.parametrize("controller", ["cpu", ""])
def test_the_group_and_its_parent_have_idle_time_only(tmp_path: Path, controller: str):
    (tmp_path / "run").mkdir()
    _only_idle_time(SimpleNamespace(paths={controller: tmp_path / "run"}))  # type: ignore[arg-type]
    assert [(folder / "cpu.idle").read_text() for folder in (tmp_path, tmp_path / "run")] == ["1", "1"]


def test_a_kernel_that_does_not_know_such_groups_is_told(tmp_path: Path):
    with pytest.raises(
        Unavailable, match=r"no control group can be made idle: No such file or directory: .*cpu\.idle"
    ):
        _only_idle_time(SimpleNamespace(paths={"cpu": tmp_path / "none" / "run"}))  # type: ignore[arg-type]
