"""Sites that trials open: timed for real, and gone afterwards, however the run ends."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.hosts.local import LocalHost
from weighbridge.model.command import Command
from weighbridge.model.host import Limits
from weighbridge.model.openings import Opened
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland
from weighbridge.runner import clean
from weighbridge.runner import run_lock as state

from .conftest import open_run
from .machine import Machine, processes
from .weighing import DOCKER, NATIVE, going, run_id, trials, weighbridge, write_study

BOOT, DENSITY = "boot: {kind: boot, sites: 2, duration: 0s}", "density: {kind: density, sites: 3, settle: 200ms}"
MANY = "density: {kind: density, sites: 200, settle: 0s, slow: 1000}"
HUNDREDS = "density: {kind: density, sites: 320, settle: 0s, slow: 1000}"
OPEN = 5
"""So many launchers are more than the run's own sites have."""


def test_sites_are_opened_timed_and_closed(machine: Machine, tmp_path: Path):
    study = write_study(tmp_path, environments=(NATIVE, DOCKER), workloads=(BOOT, DENSITY), blocks=3, aa=True)
    run = tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    machine.must_be_unchanged()
    rows = trials(run)
    assert len(rows) == 18 and {row["outcome"] for row in rows} == {"ok"}
    slower = 0
    for row in rows:
        found = Opened.model_validate_json((run / f"raw/{row['id']:06d}.solo.stdout").read_bytes())
        assert len(found.openings) == (2 if row["workload"] == "boot" else 3) and not found.stopped
        for each in found.openings:
            assert each.close_s is not None and each.group_bytes and each.available_bytes
            assert 0.001 < each.open_s < each.ready_s < 30
            assert 0 < each.own_cpu_s < each.ready_s
            assert each.group_bytes < 2**25, "an idle site has a launcher in it, and nothing else"
        assert sum(each.ready_s + each.close_s for each in found.openings if each.close_s) < row["duration_s"]
        slower += row["environment"] == "bridge" and found.openings[0].ready_s > 0.05
    assert slower == 6, "a container takes longer than a process"
    told = json.loads(weighbridge("report", run, "--json").stdout)
    metrics = {each["metric"] for each in told["costs"]}
    assert {"time_to_ready", "time_to_close", "memory_per_site", "memory_in_group", "start_slowdown"} <= metrics


@pytest.mark.parametrize(
    ("kind", "rootless"), [("docker", {}), ("podman", {}), ("podman", {"rootless": True})], ids=str
)
def test_additional_files_are_in_the_image(
    machine: Machine, small_userland: Userland, kind: str, rootless: dict[str, bool]
):
    environment, size = registry.environments()[kind], 3 * 2**20 + 5
    options = environment.options.model_validate({"network": "none", **rootless})
    with open_run("1a6e1a6e1a6e") as run:
        request = SiteRequest(run, LocalHost(run.id), "1-files-solo", "solo", small_userland, Limits())
        environment.make_images(options, request, [size])
        for files in (0, size):
            with environment.open(options, replace(request, image_files=files)) as site:
                done = site.run(Command(("sh", "-c", "cat /weighbridge-files/* | wc -c"), 20))
                assert int(done.text) == files, done
    machine.must_be_unchanged()


def test_more_sites_than_select_has_descriptors_for(machine: Machine, tmp_path: Path):
    """Each has four descriptors: select(2), which ends at 1024, failed at about 245 sites."""
    study = write_study(tmp_path, workloads=(HUNDREDS,), blocks=1)
    run = tmp_path / "run"
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        open_files = Path(f"/proc/{going_on.process.pid}/fd")
        going_on.await_that(lambda: max(int(each.name) for each in open_files.iterdir()) > 1200, "so many are open")
        done = going_on.end()
    assert done.code == 0, done
    (row,) = trials(run)
    found = Opened.model_validate_json((run / f"raw/{row['id']:06d}.solo.stdout").read_bytes())
    assert row["outcome"] == "ok" and len(found.openings) == 320 and not found.stopped
    assert all(each.close_s is not None for each in found.openings)


def launchers(run: str) -> int:
    return sum(its == run and name.startswith("weighbridge-lau") for _, its, name in processes())


@pytest.mark.parametrize(
    "environment", [pytest.param(NATIVE, marks=pytest.mark.long, id="native"), pytest.param(DOCKER, id="bridge")]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_while_sites_are_opened(machine: Machine, tmp_path: Path, environment: str, number: int):
    study = write_study(tmp_path, environments=tuple({environment, NATIVE}), workloads=(MANY,), blocks=1)
    run = tmp_path / "run"
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_text("trials done")
        going_on.await_that(
            lambda: (run / "run.sqlite").exists() and launchers(run_id(run)) >= OPEN, "sites are open"
        )
        done = going_on.end(number)
    if number == signal.SIGINT:
        done.must_fail(130, "interrupted")
    else:
        _clean(run_id(run))  # `weighbridge clean` would end what others on this machine have left, too
    assert [each for each in clean.find().left if each.run == run_id(run)] == []
    machine.must_be_unchanged()


def _clean(run: str) -> None:
    with state.lock_run(run, "clean") as folder:
        assert folder is not None
        clean.sweep(run)
        state.forget(run)
