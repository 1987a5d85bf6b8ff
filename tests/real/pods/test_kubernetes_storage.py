"""What pods keep data on in a real cluster: it is there, it is what it says, and nothing of it stays."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes.volumes import NodeFolders
from weighbridge.model.command import Command
from weighbridge.model.host import Host, Limits, RunContext
from weighbridge.model.site import MountRequest, SiteRequest, SiteStorage
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.registry import workloads
from weighbridge.study.source import bundled
from weighbridge.userland.build import key_of

from ..cluster import Cluster
from ..conftest import kept_userland, open_run
from ..kubernetes import NEEDS_CLUSTER, host_options, opened_host
from ..weighing import IN_STORAGE_TESTS, facts, killed_after_a_trial, run_id, trials, weighbridge

pytestmark = [
    NEEDS_CLUSTER,
    pytest.mark.promise("pods keep data on their nodes' disks, in memory and on volumes, and leave none of it"),
]
RUN = "90d590d590d9"
CLASS = "folders"
STUDY = """study: storage
question: What does it cost to write there?
hosts: {a: %s}
resources: {cpus: 0.3}
baseline: disk
aa: false
environments:
  disk: {kind: pod}
  memory: {kind: pod, storage: {kind: tmpfs, size: 2GiB}}
  path: {kind: pod, storage: {kind: host-path, path: %s}}
  volume: {kind: pod, storage: {kind: claim, size: 2GiB, storage_class: folders}}
workloads:
  file: {kind: fio, file_size: 8MiB, fsync: 4, cold: false, duration: 1s}
  sql: {kind: pgbench, scale: 1, clients: 2, duration: 1s, warm_up: 0s}
repetitions: {blocks: 1}
"""


@pytest.fixture(scope="module")
def classes(cluster: Cluster) -> Iterator[None]:
    """A StorageClass that makes volumes at once, by folders of /tmp."""
    about = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": CLASS}}
    cluster.apply({**about, "provisioner": "kubernetes.io/host-path", "reclaimPolicy": "Delete"})
    yield
    cluster.must("delete", "storageclass", CLASS)


@pytest.fixture
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of the nodes, in which nothing is left."""
    folder = tmp_path_factory.mktemp("disk")
    yield folder
    assert not [*folder.iterdir()]


def volumes(cluster: Cluster) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.get("persistentvolumes")["items"]]


def with_storage(
    host: Host, run: RunContext, userland: Userland, number: int, pod: Mapping[str, Any] | None = None, **storage: Any
):
    """A pod with this storage, and these options."""
    plugin, environment = registry.storage()[str(storage["kind"])], registry.environments()["pod"]
    options = plugin.options.model_validate(storage)

    def opened(request: MountRequest) -> Any:
        return plugin.open(options, request)

    kept = SiteStorage(plugin.kind, opened)
    limits = Limits(cpus=0.5, memory=128 << 20)
    request = SiteRequest(run, host, f"{number}-pod-solo", "solo", userland, limits, storage=kept)
    return environment.open(environment.options(**(pod or {})), request)


@pytest.mark.usefixtures("unchanged", "classes")
def test_a_pods_data_is_on_its_storage_and_goes_with_it(cluster: Cluster, small_userland: Userland, disk: Path):
    with open_run(RUN) as run, opened_host(cluster, run) as host:
        for number, (storage, kind) in enumerate(
            (
                ({"kind": "empty-dir", "size": "64MiB"}, ""),
                ({"kind": "tmpfs", "size": "64MiB"}, "tmpfs"),
                ({"kind": "host-path", "path": str(disk)}, ""),
                ({"kind": "claim", "storage_class": CLASS, "size": "64MiB"}, ""),
                ({"kind": "layer"}, "overlay"),
            )
        ):
            with with_storage(host, run, small_userland, number, **storage) as site:
                site.put("/srv/file", b"data")
                done = site.run(Command(("sh", "-c", "mkdir -p /srv/a/b && sync /srv/file && stat -fc %T /srv")))
                assert done.returncode == 0 and (kind or "ext") in done.text.replace("/", ""), (storage, done)
                if "path" in storage:
                    [folder] = disk.iterdir()
                    assert (folder / "file").read_bytes() == b"data"
                    [seen] = NodeFolders().find_at("", "")
                    assert [each.name for each in seen.leftovers] == [str(folder)]
                    assert "has not ended" in str(seen.alive)
                    NodeFolders().remove_at("", "", RUN)  # as another machine does, of a run that has died
                    assert not [*disk.iterdir()]
            assert not [*disk.iterdir()]
    cluster.eventually("its volume has gone", lambda: not volumes(cluster))


@pytest.mark.usefixtures("unchanged", "classes")
def test_what_cannot_be_had_is_told_at_once(cluster: Cluster, small_userland: Userland):
    with open_run(RUN) as run, opened_host(cluster, run) as host:
        for number, (storage, why) in enumerate(
            (
                ({"kind": "host-path", "path": "/no/such"}, "/no/such is not a directory"),
                ({"kind": "claim", "storage_class": "nosuch"}, 'storageclass.storage.k8s.io "nosuch" not found'),
                ({"kind": "claim"}, "no storage class is set"),
            )
        ):
            began = time.monotonic()
            with pytest.raises(Unavailable, match=why), with_storage(host, run, small_userland, number, **storage):
                pass
            assert time.monotonic() - began < (60 if number == 0 else 20), storage  # the first one loads the image


def link_userland(cache: Path, kinds: Sequence[str], kept: Userland) -> None:
    """Have studies with these workloads use a userland that the user keeps, which has more."""
    spec = UserlandSpec.union(workloads()[kind].userland() for kind in kinds)
    link = cache / "userlands" / key_of(spec)
    if not link.is_symlink():
        link.symlink_to(kept.root.parent)


@pytest.fixture
def tools(cache: Path) -> None:
    """A userland with all tools of storage, for studies that want some of them."""
    kinds = [each for kind, each in workloads().items() if kind in IN_STORAGE_TESTS]
    for wanted in (("fio", "pgbench"), ("fio",)):
        link_userland(cache, wanted, kept_userland(kinds))


@pytest.mark.long  # a userland of their own, with PostgreSQL
@pytest.mark.usefixtures("unchanged", "classes", "tools")
def test_tools_of_storage_are_measured_in_pods(cluster: Cluster, tmp_path: Path, disk: Path):
    path = tmp_path / "study.yaml"
    path.write_text(STUDY % (json.dumps(host_options(cluster, 0)), disk))
    run = tmp_path / "run"
    ended = weighbridge("run", path, "--rehearsal", "--out", run, "--yes")
    assert ended.code == 0, ended
    rows = trials(run)
    assert len(rows) == 8 and {row["outcome"] for row in rows} == {"ok"}, rows
    told = facts(run)
    assert told["volume/server", "storage: provisioner"] == "kubernetes.io/host-path"
    assert told["memory/server", "storage: mounted"].startswith("tmpfs")
    again = tmp_path / "killed"
    killed_after_a_trial(path, again, tmp_path)
    left = weighbridge("clean", "--check", "--run", run_id(again))
    assert f"{disk}/weighbridge-" in left.stdout and "PersistentVolumeClaim" in left.stdout, left
    assert weighbridge("clean", "--run", run_id(again)).code == 0
    cluster.eventually("its volumes have gone", lambda: not volumes(cluster))


@pytest.mark.long  # two studies
@pytest.mark.usefixtures("unchanged", "tools")
@pytest.mark.parametrize("name", ["kubernetes-limits", "kubernetes-storage"])
def test_bundled_studies_are_measured(cluster: Cluster, tmp_path: Path, name: str):
    here = f"a: {json.dumps(host_options(cluster, 0))}"
    text = bundled()[name].replace("a: {kind: kubernetes}", here).replace("blocks: 10", "blocks: 1")
    (tmp_path / "mine.yaml").write_text(text)
    run = tmp_path / "run"
    ended = weighbridge("run", tmp_path / "mine.yaml", "--profile", "quick", "--rehearsal", "--out", run, "--yes")
    assert ended.code == 0, ended
    rows = trials(run)
    assert rows and {row["outcome"] for row in rows} == {"ok"}, rows
    environments = {row["environment"] for row in rows}
    assert environments >= {"kubernetes-limits": {"one", "half"}, "kubernetes-storage": {"layer", "memory"}}[name]
