"""The alternative meter: sadf's output, captured, and every way in which sysstat fails."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.meters.meter import MeterFailed
from weighbridge.meters.sysstat import SysstatMeter, series
from weighbridge.model.command import Command, Completed

DATA = Path(__file__).parent / "data"
TEXT = (DATA / "sadf.json").read_bytes()


def test_series_have_the_names_and_units_of_ours():
    found = {each.name: each for each in series(TEXT, "host a", 2.0)}
    assert {each.place for each in found.values()} == {"host a"}
    told = json.loads(TEXT)["sysstat"]["hosts"][0]["statistics"]
    assert found["cpu_user_share"].at_s == (3.0, 4.0, 5.0, 6.0)
    assert found["cpu_user_share"].values[0] == pytest.approx(told[0]["cpu-load"][0]["usr"] / 100 * 2)
    assert found["memory_committed_bytes"].values[0] == told[0]["memory"]["commit"] * 1024
    assert found["memory_used_bytes"].values[0] == told[0]["memory"]["memused"] * 1024
    assert found["disk_vda_written_bytes_per_s"].values[0] == 15.84 * 1024
    busy = sum(found[f"cpu_{kind}_share"].values[0] for kind in ("user", "nice", "system", "iowait", "steal", "irq",
                                                                 "softirq", "idle"))  # fmt: skip
    assert busy == pytest.approx(2, abs=0.01)
    assert "lo_receive_bytes_per_s" in found


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b"null", TEXT[:-9], TEXT[:300], b"Cannot open /tmp/x\n", b"\xff"]
)
def test_an_output_that_is_none(text: bytes):
    with raises_sentence(MeterFailed):
        series(text, "host a")


def test_a_restart_of_the_machine_is_no_reading():
    told = json.loads(TEXT)
    told["sysstat"]["hosts"][0]["statistics"].insert(0, {"restart": {}})
    assert series(json.dumps(told).encode(), "p") == series(TEXT, "p")


@given(st.binary(max_size=40), st.integers(0, len(TEXT)), st.integers(0, 60))
def test_any_output(noise: bytes, at: int, gone: int):
    try:
        series(TEXT[:at] + noise + TEXT[at + gone :], "p")
    except MeterFailed as failure:
        assert "sadf" in str(failure)


class Sadc:
    """A started sadc. Implements ``Running``."""

    def __init__(self, written: bytes, lost: bool = False) -> None:
        self.written, self.lost, self.stopped = written, lost, 0

    def stop(self) -> Completed:
        self.stopped += 1
        if self.lost:
            raise EnvironmentLost("the host has gone")
        return Completed(("sadc",), -15, self.written, b"", 1.0)


class SomeHost:
    """Implements what of ``Host`` the meter uses."""

    name = "a"

    def __init__(self, told: bytes = TEXT, code: int = 0, *, has: bool = True, sadc: Sadc | None = None) -> None:
        self.told, self.code, self.has, self.sadc = told, code, has, sadc or Sadc(b"binary")
        self.ran: list[Command] = []

    def run(self, command: Command) -> Completed:
        self.ran.append(command)
        if command.argv[0] == "test":
            return Completed(command.argv, 0 if self.has and "lib64" in command.argv[2] else 1, b"", b"", 0.0)
        return Completed(command.argv, self.code, self.told, b"", 0.0)

    def start(self, command: Command, *, hold: bool = False) -> Sadc:
        self.ran.append(command)
        return self.sadc


def test_a_trial():
    host = SomeHost()
    meter = SysstatMeter(host, 0.5)
    meter.begin({"server": {"cpu.stat": "/g"}})
    taken = meter.end(0.0)
    assert taken.own_cpu_s is None
    assert {each.place for each in taken.series} == {"host a"}
    assert host.ran[-2].argv == ("/usr/lib64/sa/sadc", "-S", "DISK", "2")
    assert host.ran[-1].stdin == b"binary"
    with raises_sentence(MeterFailed):
        meter.end(0.0)


def test_a_trial_that_is_shorter_than_an_interval():
    meter = SysstatMeter(SomeHost(told=b"", code=1))
    meter.begin({})
    assert meter.end(0.0).series == ()


def test_what_goes_wrong_is_told():
    for host in SomeHost(sadc=Sadc(b"")), SomeHost(sadc=Sadc(b"x", lost=True)), SomeHost(told=TEXT[:-50]):
        meter = SysstatMeter(host)
        meter.begin({})
        with raises_sentence(MeterFailed):
            meter.end(0.0)


def test_it_is_ended_with_the_session():
    host = SomeHost()
    meter = SysstatMeter(host)
    meter.begin({})
    meter.close()
    meter.close()
    assert host.sadc.stopped == 1


def test_a_host_without_it_and_a_rate_that_it_cannot_do():
    with raises_sentence(Unavailable):
        SysstatMeter(SomeHost(has=False))
    with raises_sentence(Unavailable):
        SysstatMeter(SomeHost(), 10.0)
