"""Storage on disks made for the run, in memory and in several sites: each is in force, and nothing of it is left."""

from pathlib import Path

from weighbridge.hosts.chroot import chroot_site
from weighbridge.hosts.local import LocalHost
from weighbridge.model.host import Limits
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome
from weighbridge.model.site import SiteRequest, SiteStorage
from weighbridge.model.trial import Trial
from weighbridge.model.userland import Userland
from weighbridge.model.workload import Endpoint
from weighbridge.runner.stage import Stage
from weighbridge.runner.trial import run_trial
from weighbridge.storage import tmpfs
from weighbridge.store.run import RunStore
from weighbridge.workloads.dd import PLUGIN as DD

from .conftest import open_run
from .machine import Machine
from .weighing import weighbridge, write_study

ON = "kind: docker, network: none"
ENVIRONMENTS = (
    "native: {kind: native, storage: {kind: directory, disk: xfs}}",
    f"bind: {{{ON}, storage: {{kind: bind, disk: ext4}}}}",
    f"volume: {{{ON}, storage: {{kind: volume, disk: btrfs}}}}",
    f"layer: {{{ON}, storage: {{kind: layer, disk: btrfs}}}}",
    f"memory: {{{ON}, storage: {{kind: tmpfs, size: 64MiB}}}}",
    "native-memory: {kind: native, storage: {kind: tmpfs, size: 64MiB}}",
)
FILES = (
    "files: {kind: sysbench-fileio, mode: rndwr, file_size: 4MiB, files: 4, cold: false, duration: 1s, sites: [1, 3]}"
)
HOST = ("hosts: {a: {kind: testbed}}",)
MOUNTED = {"native": "xfs", "bind": "ext4", "volume": "btrfs", "memory": "tmpfs", "native-memory": "tmpfs"}


def test_each_is_in_force_and_sites_add_up(machine: Machine, tmp_path: Path):
    study = write_study(tmp_path, environments=ENVIRONMENTS, workloads=(FILES,), blocks=1, further=HOST)
    ended = weighbridge("run", str(study), "--out", str(tmp_path / "run"), "--yes")
    assert ended.code == 0, ended
    with RunStore(tmp_path / "run") as store:
        facts = {(scope, key): value for scope, key, value, _ in store.facts()}
        trials = {trial.id: trial for trial in store.trials()}
        samples = [each for each in store.samples("writes") if each.site.startswith("site ")]
        values = {
            (value.environment, value.level): value.value for value in store.values() if value.metric == "writes"
        }
    for name, kind in MOUNTED.items():
        assert facts[f"{name}/server", "storage: mounted"].split()[0] == kind
    assert "btrfs" in facts["layer/server", "storage driver"]
    assert ("layer/server", "storage: mounted") not in facts, "it is the container's own root"
    for (name, level), value in values.items():
        if "3" in level.text:
            mine = [each.value for each in samples if trials[each.trial].environment == name]
            assert len(mine) == 3
            assert abs(sum(mine) - value) < 1e-6 * value
    machine.must_be_unchanged()


def test_a_disk_that_is_full_in_mid_trial_is_the_outcome(machine: Machine, small_userland: Userland):
    options = tmpfs.TmpfsOptions.model_validate({"size": "8MiB"})
    storage = SiteStorage("tmpfs", lambda at: tmpfs.PLUGIN.open(options, at))
    asked = DD.options.model_validate({"file_size": "16MiB"})
    with open_run("fa11d15c0a1b") as run:
        request = SiteRequest(
            run, LocalHost(run.id), "0-full-solo", "solo", small_userland, Limits(), storage=storage
        )
        with chroot_site(request) as site:
            stage = Stage({"solo": site}, {"solo": Endpoint("127.0.0.1", "127.0.0.1", 0)})
            record = run_trial(Trial(1, 0, "dd", Level(), "full"), DD, asked, stage)
    assert record.outcome is Outcome.PROGRAM_FAILED and "No space left on device" in record.message, record
    machine.must_be_unchanged()


def test_a_study_without_room_is_refused_before_anything_is_started(machine: Machine, tmp_path: Path):
    files = "files: {kind: sysbench-fileio, file_size: 128MiB, files: 4}"
    small = "native: {kind: native, storage: {kind: tmpfs, size: 64MiB}}"
    study = write_study(tmp_path, environments=(small,), workloads=(files,), blocks=1)
    told = "its workloads write about 128 MiB, but its storage holds 64 MiB"
    for command in (("plan", study), ("run", study, "--yes")):
        ended = weighbridge(*map(str, command))
        assert ended.code == 4 and told in " ".join((ended.stdout + ended.stderr).split()), ended
    machine.must_be_unchanged()
