"""How images get to the nodes of a real cluster: pushed to a real registry, pulled from it, loaded; and go again."""

import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.engines.private import private_engine
from weighbridge.engines.settings import Settings
from weighbridge.errors import Unavailable
from weighbridge.hosts.local import LocalHost
from weighbridge.linux import process
from weighbridge.model.command import Command
from weighbridge.model.userland import Userlands, UserlandSpec
from weighbridge.userland.build import key_of

from ..cluster import NAMES, Cluster
from ..conftest import kept_userland, open_run
from ..kubernetes import NEEDS_CLUSTER, host_options, opened_host
from ..weighing import facts, killed_after_a_trial, run_id, trials, weighbridge

LACKING = [program for program in ("docker-registry", "dockerd", "docker") if process.which(program) is None]
pytestmark = [
    NEEDS_CLUSTER,
    pytest.mark.skipif(bool(LACKING), reason=f"needs {', '.join(LACKING)}"),
    pytest.mark.promise("images of pods come from a registry or are loaded, and nothing of them stays on the nodes"),
]
PORT = 5000
CTR = process.which("ctr")
RUN, ENGINE_RUN = "90d590d590d7", "90d590d590d8"
STUDY = """study: images
question: Does it run?
hosts: {a: %s}
inside: [server, client]
resources: {cpus: 0.4, memory: 256MiB}
baseline: host
aa: false
environments:
  host: {kind: pod, network: host}
  pod:  {kind: pod}
workloads:
  tcp: {kind: iperf3, duration: 1s}
repetitions: {blocks: 1}
%s
"""


@dataclass(frozen=True)
class Registry:
    """A registry on this machine, as the nodes and the user's engine have it."""

    address: str

    def name(self, repository: str) -> str:
        return f"{self.address}/{repository}"


@dataclass(frozen=True)
class WithoutTls(Settings):
    """An engine that pushes to a registry without TLS."""

    registry: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("--iptables=false", "--insecure-registry", self.registry)


@pytest.fixture(scope="module", autouse=True)
def light_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache whose userland has iperf3 alone, and what all have: it goes through compressors."""
    folder = tmp_path_factory.mktemp("light")
    iperf3, dd = (registry.workloads()[kind] for kind in ("iperf3", "dd"))
    (folder / "userlands").mkdir()
    for key in {key_of(UserlandSpec.union(each.userland() for each in some)) for some in ((iperf3,), (iperf3, dd))}:
        (folder / "userlands" / key).symlink_to(kept_userland([iperf3]).root.parent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEIGHBRIDGE_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def stored(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry without TLS, which the nodes and an engine of this machine believe."""
    folder = tmp_path_factory.mktemp("registry")
    address = f"{_our_address(cluster)}:{PORT}"
    settings = {
        "version": "0.1", "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": address}, "log": {"level": "error"},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(settings))  # which is YAML, too
    for node in cluster.nodes:
        host = node.data / "registries" / address
        host.mkdir(parents=True, exist_ok=True)
        (host / "hosts.toml").write_text(f'server = "http://{address}"\n[host."http://{address}"]\n')
    serving = process.Process(Command(("docker-registry", "serve", str(folder / "config.json"))))
    try:
        with (
            open_run(ENGINE_RUN) as run,
            private_engine(run, LocalHost(run.id), WithoutTls(registry=address)),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setenv("DOCKER_HOST", f"unix://{run.state}/docker.sock")
            patch.setenv("DOCKER_CONFIG", str(folder / "client"))
            cluster.eventually("the registry", lambda: _listens(address))
            yield Registry(address)
    finally:
        serving.stop()


def _our_address(cluster: Cluster) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
        towards.connect((cluster.nodes[0].host.address, 9))
        return str(towards.getsockname()[0])


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as try_it:
        return try_it.connect_ex((host, int(port))) == 0


def study(cluster: Cluster, folder: Path, images: dict[str, object], more: str = "") -> Path:
    path = folder / "study.yaml"
    path.write_text(STUDY % (json.dumps(host_options(cluster, 0, images=images)), more))
    return path


def on_node(cluster: Cluster, node: int = 0) -> list[str]:
    """The images of ours that a node has."""
    listed = cluster.nodes[node].must(str(CTR), "--namespace", "k8s.io", "images", "ls", "--quiet").split()
    return [each for each in listed if "weighbridge" in each]


@pytest.mark.usefixtures("unchanged")
def test_what_is_pushed_is_pulled_by_its_digest(cluster: Cluster, stored: Registry, tmp_path: Path):
    repository = stored.name("team/weighbridge")
    path = study(cluster, tmp_path, {"push": repository})
    planned = weighbridge("plan", path)
    assert f"pushed to {repository} by your engine" in " ".join(planned.stdout.split()), planned
    pushed = weighbridge("userland", "push", path, repository, "--yes")
    assert pushed.code == 0, pushed
    launcher, userland = pushed.stdout.split()
    ended = weighbridge("run", path, "--rehearsal", "--out", tmp_path / "run", "--yes")
    assert ended.code == 0 and "pushing" not in ended.stderr, ended
    assert {row["outcome"] for row in trials(tmp_path / "run")} == {"ok"}
    assert facts(tmp_path / "run")["pod/server", "image"] == userland
    assert {launcher, userland} <= {*on_node(cluster)}, "the cluster's own to keep"


@pytest.mark.long
@pytest.mark.usefixtures("unchanged")
def test_an_image_of_the_users_is_pulled_as_it_is(cluster: Cluster, stored: Registry, tmp_path: Path):
    shop = stored.name("shop:1.4")
    tar = kept_userland([registry.workloads()["iperf3"]]).archive()
    for words in (("import", "--change", "ENV SHOP=open", str(tar), shop), ("push", shop)):
        done = process.run(Command(("docker", *words), 120.0))
        assert done.returncode == 0, done
    path = study(cluster, tmp_path, {"pull": True}, f"userland: {{kind: image, image: '{shop}'}}")
    ended = weighbridge("run", path, "--rehearsal", "--out", tmp_path / "run", "--yes")
    assert ended.code == 0, ended
    assert facts(tmp_path / "run")["pod/server", "image"].startswith(f"{stored.name('shop')}@sha256:")


@pytest.mark.usefixtures("unchanged")
def test_an_image_that_cannot_be_pulled_is_told_at_once(cluster: Cluster, stored: Registry):
    userland = kept_userland([registry.workloads()["iperf3"]])
    digest = f"sha256:{'0' * 64}"
    absent = Userlands(
        type(userland)(userland.digest, userland.root, None, {}, reference=stored.name(f"no@{digest}"))
    )
    with open_run(RUN) as run:
        run.userlands = absent
        began = time.monotonic()
        with (
            pytest.raises(Unavailable, match=rf"no@{digest}.*not found"),
            opened_host(cluster, run, images={"pull": True}),
        ):
            pass
        assert time.monotonic() - began < 20


@pytest.fixture
def containerd(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a node: `ctr` is that of node-a."""
    enter = f"nsenter --target {cluster.nodes[0].host.pid} --mount --net --pid --"
    (tmp_path / "bin").mkdir()
    ctr = tmp_path / "bin/ctr"
    ctr.write_text(f'#!/bin/sh\nexec {enter} {CTR} "$@"\n')
    ctr.chmod(ctr.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{ctr.parent}{os.pathsep}{os.environ['PATH']}")


def listed_by_kubelet(cluster: Cluster, node: int = 0) -> list[str]:
    """The images of ours that a node's status lists, which is a minute behind."""
    status = cluster.get(f"node/{NAMES[node]}")["status"]
    return [name for image in status["images"] for name in image["names"] if "/weighbridge/" in name]


@pytest.fixture
def of_others(cluster: Cluster) -> Iterator[None]:
    """What others' runs loaded onto node-a has other names meanwhile: this one's would remove it."""
    images = on_node(cluster)

    def renamed(old: str, new: str) -> None:
        for words in (("tag", old, new), ("rm", old)):
            cluster.nodes[0].must(str(CTR), "--namespace", "k8s.io", "images", *words)

    for image in images:
        renamed(image, image.replace("weighbridge", "aside"))
    cluster.eventually("kubelet lists none of them", lambda: not listed_by_kubelet(cluster), 120)  # so they are ours
    yield
    for image in images:
        renamed(image.replace("weighbridge", "aside"), image)


@pytest.mark.long
@pytest.mark.usefixtures("unchanged", "containerd", "of_others")
def test_what_was_loaded_is_removed_at_the_end_or_by_clean(cluster: Cluster, tmp_path: Path):
    before = on_node(cluster)
    path = study(cluster, tmp_path, {"load": "containerd"})
    ended = weighbridge("run", path, "--rehearsal", "--out", tmp_path / "whole", "--yes")
    assert ended.code == 0 and f"onto node {NAMES[0]}" in ended.stderr, ended
    assert on_node(cluster) == before
    run, disk = tmp_path / "killed", tmp_path / "disk"
    disk.mkdir()
    on_disk = f"  path: {{kind: pod, storage: {{kind: host-path, path: {disk}}}}}\nworkloads:\n"
    path.write_text(path.read_text().replace("workloads:\n", f"{on_disk}  write: {{kind: dd, file_size: 1MiB}}\n"))
    killed_after_a_trial(path, run, tmp_path)
    left = weighbridge("clean", "--check", "--run", run_id(run))
    assert f"image on node {NAMES[0]} docker.io/weighbridge/userland:" in left.stdout and [*disk.iterdir()], left
    cleaned = weighbridge("clean", "--run", run_id(run))
    assert cleaned.code == 0 and not [*disk.iterdir()], cleaned
    assert on_node(cluster) == before
