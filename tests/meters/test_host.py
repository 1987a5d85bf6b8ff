"""What two readings of the meters say about a trial: pure functions."""

import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.meters.host import host_flags, read, shared_flags, site_flags, used
from weighbridge.model.flag import Flag, FlagCode

SATURATED = Flag(FlagCode.GENERATOR_SATURATED)

TICKS = os.sysconf("SC_CLK_TCK")
SITES = [{"cpu_s": 0.5}, {"cpu_s": 0.2}]
QUIET = {"busy_s": 1.0, "steal_s": 0.0, "load1": 0.5, "psi_cpu_s": 0.0, "psi_memory_s": 0.0, "psi_io_s": 0.0}


def test_a_quiet_machine_has_no_flags():
    assert host_flags(QUIET, SITES, 10.0, 2) == []
    assert host_flags({}, SITES, 10.0, 2) == []
    assert site_flags("server", {"cpu_s": 5.0, "throttled_s": 0.0}, 10.0) == []
    assert site_flags("client", {}, 10.0) == []


@pytest.mark.parametrize(
    ("readings", "flag"),
    [({"steal_s": 1.0}, Flag(FlagCode.STEAL, figures={"share": 0.05})),
     ({"psi_memory_s": 1.0}, Flag(FlagCode.MEMORY_PRESSURE, figures={"share": 0.1})),
     ({"psi_io_s": 5.0}, Flag(FlagCode.IO_PRESSURE, figures={"share": 0.5}))],
)  # fmt: skip
def test_a_disturbed_machine_is_flagged(readings: dict[str, float], flag: Flag):
    assert host_flags(QUIET | readings, SITES, 10.0, 2) == [flag]


@pytest.mark.parametrize("readings", [{"steal_s": 0.2}, {"load1": 90.0}, {"psi_memory_s": 0.5}, {"psi_cpu_s": 10.0}])
def test_thresholds(readings: dict[str, float]):
    assert host_flags(QUIET | readings, SITES, 10.0, 2) == []


def test_a_table_of_connections_that_is_nearly_full_is_flagged_as_it_grew(tmp_path: Path):
    folder = tmp_path / "sys/net/netfilter"
    folder.mkdir(parents=True)
    (folder / "nf_conntrack_max").write_text("131072\n")
    readings = []
    for count in (600, 124_000):
        (folder / "nf_conntrack_count").write_text(f"{count}\n")
        readings.append(read(tmp_path))
    assert readings[0] == {"connection_table_share": pytest.approx(600 / 131072)}
    [flag] = host_flags(used(*readings), SITES, 10.0, 2)
    assert flag == Flag(FlagCode.CONNECTION_TABLE, figures={"share": pytest.approx(0.946, abs=0.001)})
    assert host_flags(used(readings[0], readings[0]), SITES, 10.0, 2) == []
    (folder / "nf_conntrack_max").write_text("0\n")
    assert read(tmp_path) == {}


def test_work_of_others_is_what_the_sites_did_not_do():
    busy = QUIET | {"busy_s": 9.0}
    (flag,) = host_flags(busy, SITES, 10.0, 2)
    assert flag.code == FlagCode.OTHER_WORK and flag.figures == pytest.approx({"cpus": 0.83})
    assert host_flags(busy, [{"cpu_s": 8.0}], 10.0, 2) == []
    assert host_flags(busy, [{}], 10.0, 2) == [], "a site whose use is not known says nothing about others"


@pytest.mark.parametrize("wall_s", [0.002, 0.01, 0.05])
def test_what_the_ticks_of_the_kernel_make_up_in_a_short_trial_is_no_flag(wall_s: float):
    ticks = {"busy_s": 2 / TICKS, "steal_s": 1 / TICKS}
    assert host_flags(QUIET | ticks, [{"cpu_s": wall_s / 2}], wall_s, 2) == []


def test_no_flag_tells_of_more_than_the_machine_has():
    flags = host_flags(QUIET | {"busy_s": 90.0, "steal_s": 90.0}, SITES, 10.0, 2)
    assert {flag.code: dict(flag.figures) for flag in flags} == {
        FlagCode.STEAL: {"share": 1.0}, FlagCode.OTHER_WORK: {"cpus": 2.0},
    }  # fmt: skip


def test_a_generator_that_was_itself_the_limit():
    assert site_flags("client", {"cpu_s": 9.4}, 10.0) == [SATURATED], "a thread has one CPU, limit or not"
    assert site_flags("client", {"cpu_s": 9.2}, 10.0) == []
    assert site_flags("client", {"cpu_s": 4.8, "throttled_s": 2.0}, 10.0) == [
        Flag(FlagCode.THROTTLED, "client", {"share": 0.2}), SATURATED,
    ]  # fmt: skip
    assert site_flags("client", {"cpu_s": 18.4}, 10.0, threads=2) == [], "the second thread has time left"
    assert site_flags("client", {"cpu_s": 18.8}, 10.0, threads=2) == [SATURATED]
    assert site_flags("server", {"cpu_s": 10.0}, 10.0) == []
    assert site_flags("solo", {"cpu_s": 10.0}, 10.0) == []


def test_a_generator_that_takes_most_of_full_cpus():
    used = {"client": {"cpu_s": 13.3}, "server": {"cpu_s": 3.8}}
    (flag,) = shared_flags(used, 10.0, 2)
    assert flag.code == FlagCode.GENERATOR_TOOK
    assert flag.figures == pytest.approx({"client": 1.33, "server": 0.38, "cpus": 2})
    assert shared_flags(used, 20.0, 2) == [], "they were not full"
    assert shared_flags({"client": {"cpu_s": 8.0}, "server": {"cpu_s": 11.0}}, 10.0, 2) == []
    assert shared_flags({}, 10.0, 2) == shared_flags(used, 10.0, 4) == []


@pytest.mark.parametrize("text", ["", "\n", "cpu", "cpu a b c d e f g h", "cpu 1 2 3", "some total=", "garbage"])
def test_what_cannot_be_read_is_absent(tmp_path: Path, text: str):
    (tmp_path / "pressure").mkdir()
    for name in ("stat", "loadavg", "pressure/cpu", "pressure/memory", "pressure/io"):
        (tmp_path / name).write_text(text)
    assert read(tmp_path) == {}
    assert read(tmp_path / "none") == {}


NUMBERS = st.floats(0, 1e6)


@given(st.dictionaries(st.sampled_from(sorted(QUIET)), NUMBERS), st.floats(0.001, 1e5), st.integers(1, 256))
def test_flags_have_finite_figures(readings: dict[str, float], wall_s: float, cpus: int):
    for flag in [*host_flags(readings, [readings], wall_s, cpus), *site_flags("client", readings, wall_s)]:
        assert flag.code in set(FlagCode)
        assert all(math.isfinite(value) for value in flag.figures.values())
