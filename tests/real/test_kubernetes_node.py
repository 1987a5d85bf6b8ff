"""What is known of nodes and pods of a real cluster: readings over time, resources, facts, rights."""

import time

import pytest

from weighbridge.meters.opened import meters
from weighbridge.model.command import Command
from weighbridge.model.study import Meters
from weighbridge.model.userland import Userland

from .cluster import Cluster
from .conftest import open_run
from .kubernetes import (
    NEEDS_CLUSTER,
    module_cluster,  # noqa: F401 - a fixture
    opened_host,
    opened_pod,
    unchanged_cluster,  # noqa: F401 - a fixture
)

pytestmark = [
    NEEDS_CLUSTER,
    pytest.mark.promise("pods of a cluster are measured, and nothing stays in it"),
]
RUN = "90d690d690d6"
SPIN = "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done"


@pytest.mark.usefixtures("unchanged")
def test_a_pod_and_its_node_are_read_over_time(cluster: Cluster, small_userland: Userland):
    with (
        open_run(RUN) as run,
        opened_host(cluster, run) as host,
        opened_pod(host, run, small_userland) as site,
        meters(Meters(), 10.0) as opened,
    ):
        meter = opened.of([host])[host.name]
        since, before = time.monotonic(), site.meters()
        assert site.sampler is not None
        meter.begin({"solo": site.scope()}, {"solo": site.sampler})
        busy = site.run(Command(("sh", "-c", SPIN)))
        taken, after = meter.end(since), site.meters()
    assert busy.usage is not None and taken.own_cpu_s is not None
    found = {each.name: each for each in taken.series if each.place == "solo"}
    cpu = found["cpu_share"]
    lasted = cpu.at_s[-1]
    area = sum(value * (at - start) for value, at, start in zip(cpu.values, cpu.at_s, (0.0, *cpu.at_s), strict=False))
    assert area == pytest.approx(after["cpu_s"] - before["cpu_s"], rel=0.1, abs=0.05)
    assert len(cpu.values) >= 7 * lasted and max(found["throttled_share"].values) > 0.1, "half a CPU"
    assert {"memory_anonymous_bytes", "pids_count"} <= found.keys()
    nodes = {each.name for each in taken.series if each.place == f"host {host.name}"}
    assert {"cpu_idle_share", "memory_available_bytes", "load1"} <= nodes
    print(f"readings took {taken.own_cpu_s:.4f} s of CPU time in {lasted:.1f} s, of a pod and its node")
    assert taken.own_cpu_s < 0.01 * lasted
