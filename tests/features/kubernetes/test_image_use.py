"""Which run removes an image from a node: a made-up cluster has the marks and pods of several runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sentences import assert_sentence
from weighbridge.features.kubernetes import cleanup, objects, supply
from weighbridge.features.kubernetes.kubectl import Denied, Kubectl, Unreached
from weighbridge.features.kubernetes.objects import NodeInfo
from weighbridge.model.cleanup import OrphanedRun
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import RunContext
from weighbridge.model.userland import Userland

ONE, TWO = "0123456789ab", "ba9876543210"
NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=2)
IMAGE = f"docker.io/weighbridge/userland:{'1' * 16}"
MINIKUBE = "minikube image rm"


@dataclass
class MadeUp:
    """Objects of a cluster. ``answers``: whether its API server does; ``removed``: commands that removed images."""

    objects: list[dict[str, Any]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    answers: bool = True
    one_namespace: bool = False

    def create(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        metadata = {**manifest["metadata"], "creationTimestamp": NOW.isoformat()}
        self.objects.append({**manifest, "metadata": metadata})
        return self.objects[-1]

    def get(self, what: str, *options: str) -> Any:
        if not self.answers:
            raise Unreached("the API server does not answer")
        if self.one_namespace and "--all-namespaces" in options:
            raise Denied("forbidden")
        items = [each for each in self.objects if f"{each['kind'].lower()}s" == what]
        for option in options:
            kind, _, expression = option.partition("=")
            if kind == "--selector":
                items = [each for each in items if all(_selects(each, one) for one in expression.split(","))]
            elif kind == "--field-selector":
                items = [each for each in items if each["spec"]["nodeName"] == expression.partition("=")[2]]
        return {"items": items}

    def delete(self, name: str) -> None:
        if not self.answers:
            raise Unreached("the API server does not answer")
        self.objects = [each for each in self.objects if f"configmap/{each['metadata']['name']}" != name]

    def add_pod(self, run: str, node: str, phase: str = "Running", created: datetime = LONG_AGO) -> dict[str, Any]:
        metadata = {"name": f"pod-{node}", "labels": objects.labels(run), "creationTimestamp": created.isoformat()}
        spec = {"nodeName": node, "containers": [{"name": "site", "image": IMAGE}]}
        self.objects.append({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}})
        return self.objects[-1]

    def command(self, command: Command, *_: object, **__: object) -> Completed:
        if {"rm", "take"} & {*command.argv}:
            self.removed.append(" ".join(command.argv))
        return Completed(command.argv, 0, b"", b"", 1.0)


def _selects(about: Mapping[str, Any], expression: str) -> bool:
    key, unlike, value = expression.partition("!=")
    label = about["metadata"]["labels"].get(key)
    return label != value if unlike else label is not None


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    made_up = MadeUp()
    for name in ("create", "get", "delete"):
        monkeypatch.setattr(Kubectl, name, lambda _, *words, name=name: getattr(made_up, name)(*words))
    monkeypatch.setattr(Kubectl, "clock", lambda _: NOW)
    monkeypatch.setattr(supply.process, "run", made_up.command)
    monkeypatch.setattr(supply, "feed", lambda command, _: made_up.command(command))
    return made_up


class Run:
    """A run that loads the userland's image onto a node."""

    def __init__(self, folder: Path, run_id: str, **options: Any) -> None:
        self.id, self.state = run_id, folder / run_id
        self.state.mkdir()
        cleanup.note(self.state, cleanup.ClusterNamespace("lab", "n", ""))
        context = RunContext(run_id, self.state, folder, None)  # type: ignore[arg-type]
        options = options or {"load": "minikube"}
        self.images = supply.ImageSupply(context, Kubectl(), "lab", supply.NodeImages(**options))
        self.userland = Userland("1" * 64, Path("/nowhere"), folder / "root.tar", {})
        (folder / "root.tar").write_bytes(b"tar")

    def loads(self, node: str = "n1", held: tuple[str, ...] = ()) -> "Run":
        info = NodeInfo(node, ready=True, address="", architecture="", labels={}, facts={}, images=held)
        assert self.images.userland(info, self.userland) == IMAGE
        return self

    def is_cleaned(self) -> None:
        """Do what ``clean`` and a continued run do."""
        supply.LoadedImages().remove(OrphanedRun(self.id, self.state, self.state))

    @property
    def noted(self) -> bool:
        return bool(supply.NOTES.read(self.state))


def test_an_image_that_a_pod_on_another_node_uses_stays(cluster: MadeUp, tmp_path: Path):
    """``minikube image rm`` removes an image from every node."""
    one = Run(tmp_path, ONE).loads("n1")
    pod = cluster.add_pod(TWO, "n2")
    one.images.remove()
    assert cluster.removed == [] and one.noted, "no other run removes it"
    pod["status"]["phase"] = "Succeeded"
    one.images.remove()
    assert [each[: len(MINIKUBE)] for each in cluster.removed] == [MINIKUBE] and not one.noted


def test_a_pod_on_another_node_does_not_keep_an_image_that_is_removed_from_one(cluster: MadeUp, tmp_path: Path):
    one = Run(tmp_path, ONE, load="containerd").loads("n1")
    cluster.add_pod(TWO, "n2")
    one.images.remove()
    assert len(cluster.removed) == 1


@pytest.mark.parametrize("one_namespace", [False, True], ids=["all namespaces", "its own"])
def test_the_last_of_two_runs_removes_an_image(cluster: MadeUp, tmp_path: Path, one_namespace: bool):
    """The second run has loaded it and has no pod yet."""
    cluster.one_namespace = one_namespace
    one, two = Run(tmp_path, ONE).loads(), Run(tmp_path, TWO).loads(held=(IMAGE,))
    one.images.remove()
    assert cluster.removed == [] and not one.noted
    two.images.remove()
    assert len(cluster.removed) == 1 and not two.noted


def test_a_killed_runs_image_stays_while_another_run_needs_it(cluster: MadeUp, tmp_path: Path):
    one, two = Run(tmp_path, ONE).loads(), Run(tmp_path, TWO).loads(held=(IMAGE,))
    one.is_cleaned()
    assert cluster.removed == []
    two.is_cleaned()
    assert len(cluster.removed) == 1


def test_a_run_that_begins_waits_while_another_one_removes_the_image(
    cluster: MadeUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    one = Run(tmp_path, ONE).loads()
    removal = supply.ImageUse(TWO, "n1", IMAGE, removes=True, is_removal=True)
    cluster.create(removal.manifest)
    one.images.remove()
    assert len(cluster.removed) == 1, "a removal is no need"
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        cluster.delete(f"configmap/{removal.name}")

    monkeypatch.setattr(supply.time, "sleep", sleep)
    Run(tmp_path, "000000000001").loads()
    assert waited == [1]
    assert [each["metadata"]["labels"][objects.RUN_LABEL] for each in cluster.objects] == ["000000000001"]


def test_a_dead_run_needs_nothing(cluster: MadeUp, tmp_path: Path):
    one, _ = Run(tmp_path, ONE).loads(), Run(tmp_path, TWO).loads()
    for each in cluster.objects:
        each["metadata"]["creationTimestamp"] = LONG_AGO.isoformat()
    one.images.remove()
    assert len(cluster.removed) == 1


def test_an_image_that_was_there_before_stays(cluster: MadeUp, tmp_path: Path):
    one = Run(tmp_path, ONE, load=("ssh", "n1", "load"), remove=("ssh", "n1", "take")).loads(held=(IMAGE,))
    one.images.remove()
    assert cluster.removed == [] and not one.noted


def test_an_image_that_is_listed_though_a_run_has_removed_it_is_removed_again(cluster: MadeUp, tmp_path: Path):
    Run(tmp_path, ONE).loads().images.remove()
    Run(tmp_path, TWO).loads(held=(IMAGE,)).images.remove()
    assert len(cluster.removed) == 2


def test_an_image_stays_if_the_cluster_does_not_say_who_needs_it(cluster: MadeUp, tmp_path: Path):
    one = Run(tmp_path, ONE).loads()
    cluster.answers = False
    one.images.remove()
    assert cluster.removed == [] and one.noted
    with pytest.raises(OSError) as error:
        one.is_cleaned()
    assert_sentence(error.value)
    assert cluster.removed == [] and one.noted
