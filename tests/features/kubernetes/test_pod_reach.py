"""The Service of a server's pod, the ports that a cluster gives it, and the NetworkPolicy in front of it."""

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes.environments.pod import PodOptions, policy
from weighbridge.features.kubernetes.environments.pod.policy import enforced
from weighbridge.features.kubernetes.environments.pod.reach import (
    ServerRoute,
    numbers_for,
    opened_way,
    ports_of,
    runs_of,
)
from weighbridge.features.kubernetes.objects import ObjectOwner
from weighbridge.model.command import PublishedPort
from weighbridge.model.environment import Needs
from weighbridge.model.names import RunId

POD = registry.environments()["pod"]
RUN = RunId("0123456789ab")
PAIR = (PublishedPort("tcp", 20000, 20000), PublishedPort("tcp", 20001, 20001), PublishedPort("udp", 20000, 20000))
FIXED = PublishedPort("tcp", 20010, 6379)
TAKEN = "provided port is already allocated"


class FakePods:
    """A cluster that gives node ports in this order, and refuses some that it is asked for."""

    node_name, namespace, owner = "node-b", "default", ObjectOwner("o", "u")

    def __init__(self, given: Sequence[int] = (), refusals: Sequence[str] = ()) -> None:
        self.given, self.refusals = list(given), list(refusals)
        self.objects: dict[str, Any] = {}
        self.names: list[str] = []

    @contextmanager
    def made(self, manifest: Mapping[str, Any]) -> Iterator[Any]:
        about = copy.deepcopy(dict(manifest))
        self.objects[about["metadata"]["name"]] = about
        self.names.append(about["metadata"]["name"])
        about["spec"]["clusterIP"] = "10.96.1.2"
        if about["spec"].get("type") == "NodePort":
            numbers: dict[int, int] = {}
            for port in about["spec"]["ports"]:
                number = numbers.get(port["port"]) or self.given.pop(0)
                numbers[port["port"]] = port["nodePort"] = number
        try:
            yield about
        finally:
            del self.objects[about["metadata"]["name"]]

    def patched(self, kind: str, name: str, changes: Mapping[str, Any]) -> Any:
        assert kind == "service"
        if self.refusals and (refusal := self.refusals.pop(0)):
            raise Unavailable(refusal)
        self.objects[name]["spec"] |= changes["spec"]
        return self.objects[name]

    def open_pod(self, request: Any) -> Any:
        raise AssertionError

    image: Any = None


@contextmanager
def way(pods: FakePods, reach: Any, *ports: PublishedPort) -> Iterator[tuple[ServerRoute, Any]]:
    with opened_way(pods, RUN, "1-x-server", reach, ports) as opened:
        [about] = pods.objects.values()
        yield opened, about
    assert not pods.objects


def test_a_service_leads_to_the_ports_of_its_server():
    with way(FakePods(), "service", *PAIR, FIXED, FIXED) as (opened, about):
        assert opened.address == "10.96.1.2" and not opened.reached and not opened.assigned_ports
        ports = {(each["protocol"], each["port"], each["targetPort"]) for each in about["spec"]["ports"]}
        assert ports == {("TCP", n, n) for n in (20000, 20001, 6379)} | {("UDP", 20000, 20000)}
        assert about["spec"]["type"] == "ClusterIP"
        assert about["spec"]["selector"] == {"weighbridge.run": RUN, "weighbridge.site": "1-x-server"}
        assert about["metadata"]["ownerReferences"][0]["uid"] == "u"


def test_a_server_listens_at_the_node_port_that_the_cluster_gave():
    """As netserver tells its client the port on which it listens for data, which is the next one."""
    with way(FakePods([30100, 30500, 31000]), "nodeport", *PAIR, FIXED) as (opened, about):
        assert opened.assigned_ports == {20000: 30100, 20001: 30101}
        assert opened.reached == {6379: 31000} and opened.address == ""
        ports = [(each["protocol"], each["targetPort"], each.get("nodePort")) for each in about["spec"]["ports"]]
        assert ports == [("TCP", 30100, 30100), ("TCP", 30101, 30101), ("UDP", 30100, 30100), ("TCP", 6379, 31000)]


def test_a_node_port_whose_next_is_taken_is_given_back():
    pods = FakePods([30100, 30500, 30200, 30500], [TAKEN])
    with way(pods, "nodeport", *PAIR) as (opened, _):
        assert opened.assigned_ports == {20000: 30200, 20001: 30201}
    with pytest.raises(Unavailable, match="does not assign node ports to a server: provided port"):  # noqa: SIM117
        with way(FakePods([30100] * 99, [TAKEN] * 99), "nodeport", *PAIR):
            pass
    with pytest.raises(Unavailable, match=r"^services is forbidden"):  # noqa: SIM117
        with way(FakePods([30100] * 99, ["services is forbidden"]), "nodeport", *PAIR):
            pass


def test_numbers_do_not_fall_together():
    runs = runs_of([*PAIR, PublishedPort("tcp", 20010, 20010), FIXED])
    assert runs == [[20000, 20001], [20010]]
    assert numbers_for(runs, {20000: 30100, 20010: 30101}) is None
    assert numbers_for(runs, {20000: 30100, 20010: 30102}) == {20000: 30100, 20001: 30101, 20010: 30102}
    assert ports_of([FIXED]) == [{"name": "tcp-6379", "protocol": "TCP", "port": 6379, "targetPort": 6379}]


@pytest.mark.parametrize(("options", "needs", "problem"), [
    ({"reach": "service"}, {}, ""),
    ({"reach": "service", "network": "host"}, {}, "needs 'network: pod'"),
    ({"reach": "nodeport"}, {"inside": frozenset({"client"})}, "Add server to 'inside'"),
    ({"reach": "nodeport"}, {"network": False}, "without a network"),
    ({"reach": "headless"}, {}, "Use 'reach: pod'"),
    ({"policy": "allow"}, {}, ""),
    ({"policy": "allow", "network": "host"}, {}, "needs 'network: pod'"),
    ({"policy": "allow"}, {"inside": frozenset({"server"})}, "both roles in pods"),
    ({"policy": "allow"}, {"network": False}, "without a network"),
    ({"policy": "allow", "reach": "service"}, {}, ""),
    ({"policy": "allow", "reach": "nodeport"}, {}, "cannot identify the client"),
])  # fmt: skip
def test_what_cannot_be_is_said(options: dict[str, Any], needs: dict[str, Any], problem: str):
    asked = Needs(**{"network": True, "inside": frozenset({"server", "client"}), **needs})
    problems = POD.check(PodOptions.model_validate(options), needs=asked)
    assert len(problems) == bool(problem) and all(problem in each for each in problems)


class FakeSite:
    """One end of a probe. ``passes``: whether a connection gets through, given the policies there are."""

    own_address = "10.244.2.7"

    def __init__(self, name: str, passes: Any = None) -> None:
        self.name, self.passes = name, passes

    def start(self, command: Any) -> Any:
        return SimpleNamespace(poll=lambda: None, stop=lambda: None)

    def listening(self, ports: Any, within_s: float) -> bool:
        return True

    def run(self, command: Any) -> Any:
        assert "10.244.2.7" in command.argv
        return SimpleNamespace(returncode=0 if self.passes() else 1)


def admitted(monkeypatch: pytest.MonkeyPatch, passes: Any, within_s: float = 0.05) -> FakePods:
    monkeypatch.setattr(policy, "WITHIN_S", within_s)
    monkeypatch.setattr(policy, "_LOOK_S", 0.001)
    pods = FakePods()
    server: Any = FakeSite("1-x-server")
    client: Any = FakeSite("2-x-client", lambda: passes({name.split("-")[2] for name in pods.objects}))
    with enforced(pods, RUN, server, client, PAIR):
        [allowing] = pods.objects.values()
        rule = allowing["spec"]["ingress"][0]
        assert rule["from"][0]["podSelector"]["matchLabels"]["weighbridge.site"] == "2-x-client"
        assert [(each["protocol"], each["port"]) for each in rule["ports"]] == [("TCP", 20000), ("TCP", 20001),
                                                                                ("UDP", 20000)]  # fmt: skip
        assert allowing["spec"]["podSelector"]["matchLabels"]["weighbridge.site"] == "1-x-server"
    assert not pods.objects
    return pods


def test_a_policy_is_believed_once_a_denial_was_seen(monkeypatch: pytest.MonkeyPatch):
    pods = admitted(monkeypatch, lambda policies: "deny" not in policies)
    assert [name.split("-")[2] for name in pods.names] == ["deny", "allow"]


@pytest.mark.parametrize(("in_force_s", "believed"), [(9, True), (14, True), (16, False)])
def test_a_policy_may_come_into_force_late(monkeypatch: pytest.MonkeyPatch, in_force_s: float, believed: bool):
    now = [0.0]

    def passes(policies: Any) -> bool:
        if "deny" not in policies:
            return True
        through = now[0] < in_force_s
        now[0] += 0.1 if through else 6  # nothing tells that a connection is denied
        return through

    monkeypatch.setattr(policy.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(policy.time, "sleep", lambda s: now.__setitem__(0, now[0] + s))
    patience = policy.WITHIN_S
    with contextlib.nullcontext() if believed else pytest.raises(Unavailable, match="does not enforce them"):
        admitted(monkeypatch, passes, patience)


def test_a_client_in_another_namespace_is_named_with_it():
    def peers(namespace: str) -> Any:
        return policy.policy(RUN, "s", FakePods.owner, "allow", "c", PAIR, namespace)["spec"]["ingress"][0]["from"]

    [alone], [named] = peers(""), peers("team")
    assert [*alone] == ["podSelector"] and named["podSelector"] == alone["podSelector"], "both, not one of them"
    assert named["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "team"}}


@pytest.mark.parametrize(("passes", "why"), [
    (lambda policies: True, "does not enforce them"),
    (lambda policies: False, "without a policy"),
    (lambda policies: not policies, "under a NetworkPolicy that allows it"),
])  # fmt: skip
def test_a_policy_that_does_nothing_or_too_much_is_refused(monkeypatch: pytest.MonkeyPatch, passes: Any, why: str):
    with pytest.raises(Unavailable, match=why):
        admitted(monkeypatch, passes)
