"""Storage on disks made for the run, in memory and in several sites: each is in force, and nothing of it is left."""

from pathlib import Path

from weighbridge.store.run import RunStore

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
        if "3" in level:
            mine = [each.value for each in samples if trials[each.trial].environment == name]
            assert len(mine) == 3
            assert abs(sum(mine) - value) < 1e-6 * value
    machine.must_be_unchanged()
