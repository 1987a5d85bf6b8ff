"""Beside other programs native sites and containers compete as equals: same weight, same place, never "different"."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.analysis.analyse import analyse
from weighbridge.hosts.local import LocalHost
from weighbridge.linux import cgroup_files
from weighbridge.model.command import Command
from weighbridge.model.host import Limits
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.userland import Userland
from weighbridge.runner.run import usual_priority
from weighbridge.store.run import RunStore

from .conftest import open_run
from .weighing import NATIVE, weighbridge, write_study

HOST = "host: {kind: docker, network: host}"
CPU = "cpu: {kind: sysbench-cpu, duration: 1s}"
REDIS = "redis: {kind: redis-benchmark, requests: 3000, clients: 5, tests: set}"
SESSIONS = 20
BUSY_S = 600
"""Seconds after which a busy loop has ended whatever becomes of its test."""
WEIGHTS = ("cpu.shares", "cpu.weight", "cpu.weight.nice", "cpu.idle", "blkio.bfq.weight", "blkio.weight", "io.weight")


# -- the same weight in the same place -------------------------------------------------------------


@pytest.fixture
def sites(small_userland: Userland) -> Iterator[Mapping[str, Site]]:
    with usual_priority(), open_run("0e16b0a55e70") as run:
        opened = {}
        for kind, options in {"native": {}, "docker": {"network": "host"}}.items():
            environment = registry.environments()[kind]
            request = SiteRequest(
                run, LocalHost(run.id), f"{kind}-server", "server", small_userland, Limits(cpus=1, memory=2**28), ()
            )
            opened[kind] = run.stack.enter_context(environment.open(environment.options(**options), request))
        yield opened


def groups_of(site: Site) -> Mapping[str, str]:
    """The group of a site's processes in each hierarchy in which it competes for something."""
    lines = site.run(Command(("cat", "/proc/self/cgroup"))).text.splitlines()
    groups = {names: path for _, names, path in (line.split(":", 2) for line in lines)}
    return {names: path for names, path in groups.items() if {*names.split(",")} & {*cgroup_files.bases()}}


def weights_of(groups: Mapping[str, str]) -> list[tuple[str, int, str, str]]:
    """Every weight of every group from the site's own to the outermost: hierarchy, level, file and its text."""
    weights = []
    for names, path in groups.items():
        base = cgroup_files.bases()[next(name for name in names.split(",") if name in cgroup_files.bases())]
        for level, group in enumerate([each for each in Path(path).parents if each != Path("/")] + [Path(path)]):
            for file in WEIGHTS:
                with contextlib.suppress(OSError):
                    text = (base / str(group).lstrip("/") / file).read_text().strip()
                    weights.append((names, level, file, text))
    return weights


def test_both_have_the_same_weight_at_every_level_below_the_same_group(sites: Mapping[str, Site]):
    native, docker = (groups_of(sites[kind]) for kind in ("native", "docker"))
    assert {names: Path(path).parent for names, path in native.items()} == {
        names: Path(path).parent for names, path in docker.items()
    }
    assert weights_of(native) == weights_of(docker)
    assert any(file in ("cpu.shares", "cpu.weight") for _, _, file, _ in weights_of(native))


def test_both_have_the_same_priority(sites: Mapping[str, Site]):
    """Nice value, real-time priority, policy of the scheduler, out-of-memory score, slack of timers."""
    script = "cut -d' ' -f18,19,40,41 /proc/self/stat; cat /proc/self/oom_score_adj /proc/self/timerslack_ns"
    read = {kind: site.run(Command(("sh", "-c", script))).text.split() for kind, site in sites.items()}
    assert read["native"] == read["docker"] and read["native"][:4] == ["20", "0", "0", "0"]


# -- never different -------------------------------------------------------------------------------


@contextlib.contextmanager
def busy_loops(number: int) -> Iterator[None]:
    """Other programs of usual priority, each of which would take a whole CPU."""
    loops = [
        subprocess.Popen(["timeout", "-s", "KILL", str(BUSY_S), "sh", "-c", "while :; do :; done"])
        for _ in range(number)
    ]
    try:
        for loop in loops:
            os.setpriority(os.PRIO_PROCESS, loop.pid, 0)
        yield
    finally:
        for loop in loops:
            loop.terminate()  # timeout hands it on: of its own death the loop would hear nothing
            loop.wait()


@pytest.mark.long
@pytest.mark.parametrize("session", range(SESSIONS))
def test_beside_busy_programs_a_container_with_the_hosts_network_is_never_different(session: int, tmp_path: Path):
    study = write_study(
        tmp_path, environments=(NATIVE, HOST), workloads=(CPU, REDIS), aa=True, resources="{memory: 512MiB}",
        repetitions="{target: 2%, min: 10, max: 10}", further=("equivalence: 3%",),
    )  # fmt: skip
    with usual_priority(), busy_loops(2):
        ended = weighbridge("run", study, "--out", tmp_path / "run", "--yes", "--beside-others")
    assert ended.code == 0, ended
    with RunStore(tmp_path / "run") as store:
        analysis = analyse(store)
    rows = {
        each.workload: row for each in analysis.headlines for row in each.comparisons if row.environment == "host"
    }
    shown = {name: (row.verdict, row.cost.percent) for name, row in rows.items() if row.cost is not None}
    print(session, shown, analysis.disturbance)
    assert {*shown} == {"cpu", "redis"} and {each for each, _ in shown.values()} <= {"equivalent", "inconclusive"}, (
        shown
    )
    assert analysis.disturbance.heavy, analysis.disturbance
