"""Nodes of a cluster as the machines of a fleet: which are taken, and as what hosts."""

import json
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.fleets.on import kubernetes
from weighbridge.fleets.providers import provided_by

PROVIDER = kubernetes.PLUGIN


def _node(name: str, *, ready: str = "True", cordoned: bool = False) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": ready}], "nodeInfo": {"architecture": "amd64"}}
    return {"metadata": {"name": name, "labels": {}}, "status": status, "spec": {"unschedulable": cordoned}}


class Kubectl:
    """It lists some nodes."""

    def __init__(self, *nodes: dict[str, Any]) -> None:
        self.nodes, self.asked = nodes, list[tuple[str, ...]]()

    def get(self, *words: str) -> Any:
        self.asked.append(words)
        return json.loads(json.dumps({"items": self.nodes}))


@pytest.fixture
def kubectl(monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    made = Kubectl(_node("w3"), _node("w1"), _node("off", ready="Unknown"), _node("kept", cordoned=True), _node("w2"))
    monkeypatch.setattr(kubernetes, "_kubectl", lambda _: made)
    return made


def _options(**given: Any) -> Any:
    provider, options = provided_by("kubernetes", given)
    assert provider is PROVIDER
    return options


def test_the_nodes_that_can_have_pods_are_taken(kubectl: Kubectl):
    assert PROVIDER.machines(_options()) == PROVIDER.allotted(_options()) == ("w1", "w2", "w3")
    assert PROVIDER.machines(_options(nodes="2")) == ("w1", "w2") and PROVIDER.count(_options(nodes="2")) == 2
    assert PROVIDER.machines(_options(nodes="pool=perf")) == ("w1", "w2", "w3")
    assert kubectl.asked[-1] == ("nodes", "--selector=pool=perf")


def test_too_few_nodes_are_told(kubectl: Kubectl):
    with raises_sentence(Unavailable):
        PROVIDER.machines(_options(nodes="4"))
    kubectl.nodes = kubectl.nodes[2:4]
    for nodes in (None, "pool=perf"):
        with raises_sentence(Unavailable):
            PROVIDER.machines(_options(nodes=nodes))


def test_a_node_is_a_host_of_the_study():
    options = _options(context="kind-perf", namespace="ours", images="registry.example/team/wb", privileged="true")
    host = PROVIDER.host(options, "w1")
    assert host == {
        "kind": "kubernetes", "node": "w1", "context": "kind-perf", "namespace": "ours",
        "images": {"push": "registry.example/team/wb"}, "privileged": True,
    }  # fmt: skip
    assert registry.hosts()["kubernetes"].options.model_validate(host)
    assert PROVIDER.host(_options(context="kind-perf"), "w1")["images"] == {"load": "kind"}
    assert "images" not in PROVIDER.host(_options(), "w1")


@pytest.mark.parametrize("given", [{"images": "?"}, {"sudo": True}], ids=str)
def test_options_of_others_and_wrong_ones_are_told(given: dict[str, Any]):
    with raises_sentence(ValueError):
        _options(**given)
