"""A host and sites that read their own files, each by its launcher."""

import time
from collections.abc import Sequence

import pytest

from weighbridge.errors import EnvironmentLost
from weighbridge.meters.meter import MeterFailed
from weighbridge.meters.opened import meters
from weighbridge.meters.sampled import SampledMeter
from weighbridge.model.host import Capabilities
from weighbridge.model.sampling import SampledFile, Samples
from weighbridge.model.study import Meters


class Reading:
    """Implements ``Sampler``: each file is a CPU time that grows by a second a second."""

    def __init__(self) -> None:
        self.files: Sequence[SampledFile] = ()
        self.fails: Exception | None = None

    def begin_sampling(self, hz: float, files: Sequence[SampledFile]) -> None:
        self.hz, self.files = hz, files

    def end_sampling(self) -> Samples:
        if self.fails is not None:
            raise self.fails
        texts = [["0\n", "1000000000\n"] if each.path.endswith("usage") else [None, None] for each in self.files]
        return Samples([0.0, 1.0], texts, 100, 4096, 0.25)


SCOPE = {"cpuacct.usage": "/sys/fs/cgroup/cpuacct/cpuacct.usage", "memory.stat": "/m", "cgroup.procs": "/p"}


def test_each_place_reads_its_own_files():
    host, site = Reading(), Reading()
    meter = SampledMeter("a", host, 10.0)
    since = time.monotonic() - 5
    meter.begin({"server": SCOPE, "client": {"cpu.stat": "/g"}}, {"server": site})
    taken = meter.end(since)
    assert [each.path for each in site.files] == [*SCOPE.values()]
    assert [each.slow for each in site.files] == [False, False, True]
    assert host.files[0] == SampledFile("/proc/stat", 256) and host.hz == 10.0
    [cpu] = taken.series
    assert (cpu.place, cpu.name, cpu.values) == ("server", "cpu_share", (1.0,)) and 6 <= cpu.at_s[0] < 7
    assert taken.own_cpu_s == 0.5
    with pytest.raises(MeterFailed, match="not started"):
        meter.end(since)
    meter.close()


@pytest.mark.parametrize("fails", [EnvironmentLost("gone"), OSError("gone"), ValueError("gone")])
def test_a_place_that_has_gone_has_no_readings(fails: Exception):
    host = Reading()
    meter = SampledMeter("a", host, 10.0)
    host.fails = fails
    meter.begin({})
    with pytest.raises(MeterFailed, match="gone"):
        meter.end(0.0)


def test_a_host_without_a_python_reads_by_itself():
    class Node:
        name, machine = "a", "host a"
        capabilities = Capabilities(sampler=Reading())

    with meters(Meters(), 5.0) as opened:
        assert isinstance(opened.of([Node()])["a"], SampledMeter)  # type: ignore[list-item]
