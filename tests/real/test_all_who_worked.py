"""CPU of all who worked, on a real machine: what docker-proxy does is in it, and in no site's own figure."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median

import pytest

from weighbridge.model.flag import FlagCode
from weighbridge.store.run import RunStore

from .weighing import NATIVE, weighbridge, write_study

pytestmark = pytest.mark.real
PROXIED = "proxied: {kind: docker, network: bridge, publish: true, publish_on: loopback}"
BUSY = 0.3
"""CPUs that others may keep busy: what gives way to the trial is not seen as its work."""
TCP = "tcp: {kind: iperf3, duration: 2s}"


@pytest.fixture
def medians(tmp_path: Path) -> Mapping[str, Mapping[str, float]]:
    """Of each environment the median of each metric over three blocks; measured anew where a test is tried again."""
    environments, further = (NATIVE, PROXIED), ("cpu_idle: auto",)
    study = write_study(
        tmp_path, environments=environments, workloads=(TCP,), blocks=3, resources="{}", further=further
    )
    ended = weighbridge("run", str(study), "--out", str(tmp_path / "run"), "--yes")
    assert ended.code == 0, ended
    found: dict[str, dict[str, list[float]]] = {}
    with RunStore(tmp_path / "run") as store:
        values = store.values()
        for value in values:
            found.setdefault(value.environment, {}).setdefault(value.metric, []).append(value.value)
        levels = {key: float(value) for scope, key, value, _ in store.facts() if scope == "idle"}
    flags = {flag.code for value in values for flag in value.flags}
    if {FlagCode.STEAL, FlagCode.OTHER_WORK} & flags and any(
        len(each.get("cpu_all_per_gbit", ())) < 3 for each in found.values()
    ):
        pytest.skip("others took part of the CPU time: that of all who worked is not known")
    assert set(levels) == {"host: CPUs busy", "host: context switches per second"}
    if levels["host: CPUs busy"] > BUSY:
        pytest.skip(
            f"other programs keep {levels['host: CPUs busy']:.1f} CPUs busy: they give way to what is measured"
        )
    return {name: {metric: median(values) for metric, values in each.items()} for name, each in found.items()}


def ratio(metrics: Mapping[str, float]) -> float:
    """CPU of all who worked to the sites' own."""
    return metrics["cpu_all_per_gbit"] / (metrics["cpu_client_per_gbit"] + metrics["cpu_server_per_gbit"])


@pytest.mark.measures
def test_docker_proxy_works_outside_of_the_sites(medians: Mapping[str, Mapping[str, float]]):
    assert 0.8 < ratio(medians["native"]) < 1.4, medians
    assert ratio(medians["proxied"]) > 1.3, medians
    assert ratio(medians["proxied"]) > ratio(medians["native"]) + 0.2, medians
    for metrics in medians.values():  # and what else the path costs is told
        assert metrics["context_switches_per_gbit"] > 0
        assert 0 <= metrics["softirq_share"] <= 100
        assert metrics["tcp_retransmits_per_gbit"] >= 0
        assert metrics["bytes_per_packet"] > 1500, "segments go through these interfaces together"
