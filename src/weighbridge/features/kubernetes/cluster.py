"""A cluster during a run: the owner of all of its objects, its nodes, its pods and the streams to their launchers."""

import contextlib
import json
import platform
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.kubernetes.cleanup import ClusterNamespace, note, remove
from weighbridge.features.kubernetes.kubectl import (
    API_OUTAGE_S,
    DENIED_S,
    FORBIDDEN,
    NOT_FOUND,
    Denied,
    Kubectl,
    Patience,
    RequestRefused,
    Unreached,
    away,
    denied,
    failure_of,
    refused,
)
from weighbridge.features.kubernetes.objects import (
    LAUNCHER,
    MOST_BYTES,
    SOCKET,
    NodeInfo,
    ObjectOwner,
    PodRequest,
    absent_path,
    added_containers,
    eviction,
    last_warning,
    node_info,
    owner,
    pod,
    selector_of_events,
    state_of,
    unknown_node,
    usable,
)
from weighbridge.features.kubernetes.remedies import with_remedy
from weighbridge.features.kubernetes.session import ConnectionLoss, SessionStream
from weighbridge.features.kubernetes.supply import LOAD_S, ImageSupply, NodeImages, supply
from weighbridge.launcher import build
from weighbridge.launcher.launch import Launcher
from weighbridge.linux.process import RUN_VARIABLE, Process, environment_of
from weighbridge.model.command import Completed
from weighbridge.model.host import RunContext

START_S = 180.0
"""The seconds for the start of a pod, unless a known problem prevents it."""
_LOOK_S = 0.25
_TOGETHER_S = 0.2
_JUDGE_S = 4.0
"""The seconds in which the API server must report the state of a pod whose stream has ended."""
_NODE_PATIENCE_S = 10.0
"""The seconds for which a node can be silent while the API server answers."""
_NODE_SILENT = re.compile("no route to host|i/o timeout|host is down")


@dataclass(frozen=True, slots=True)
class RunningPod:
    """A pod whose launcher answers. ``address`` is the pod's, or the node's if it uses the node's network."""

    name: str
    address: str
    launcher: Launcher
    manifest: Mapping[str, Any]
    entry: tuple[str, ...] = ()
    """The words with which this machine starts a program in it."""


class Cluster:
    """A namespace of a cluster that contains the objects of this run."""

    def __init__(
        self, run: RunContext, kubectl: Kubectl, namespace: str, its_owner: ObjectOwner, context: str = ""
    ) -> None:
        self.run, self.kubectl, self.namespace, self.context = run, kubectl, namespace, context
        self.owner = its_owner
        self._asking, self._patience = kubectl.impatient(), kubectl.patience or Patience()
        self._taken: dict[str, NodeInfo] = {}

    @classmethod
    def of(cls, run: RunContext, place: ClusterNamespace) -> "Cluster":
        """Return the cluster in this place, which the hosts of a run share."""
        return run.share(f"kubernetes {place}", lambda: _opened(cls, run, place))

    def node(self, host: str, name: str | None, selector: str | None, named: Collection[str]) -> NodeInfo:
        """Return the node for a host: the named one, else a ready node that no other host uses or is meant to use.

        ``named`` are the nodes that the study assigns to its hosts. Raises Unavailable.
        """
        if name is not None:
            candidates, every = [self._node_named(host, name)], []
        else:
            every = self._nodes(selector)
            taken = {*named, *(each.name for each in self._taken.values())}
            free = [each for each in every if each.name not in taken]
            candidates = [each for each in free if usable(each)] or free
        if not candidates:
            raise Unavailable(
                f"host {host}: the cluster has only {len(every)} nodes, and other hosts use them: put both roles on "
                "one host"
            )
        chosen = candidates[0]
        if not chosen.ready:
            raise Unavailable(f"host {host}: node {chosen.name} is not ready")
        if chosen.architecture not in ("", platform.machine()):
            raise Unavailable(
                f"host {host}: node {chosen.name} is {chosen.architecture}, but root filesystems are built for "
                f"{platform.machine()} here: run Weighbridge on a {chosen.architecture} machine"
            )
        self._taken[host] = chosen
        return chosen

    def _nodes(self, selector: str | None = None) -> list[NodeInfo]:
        words = ("nodes", *((f"--selector={selector}",) if selector else ()))
        return [node_info(each) for each in self.kubectl.get(*words)["items"]]

    def _node_named(self, host: str, name: str) -> NodeInfo:
        """Return a node, with only its name if the user cannot read it."""
        try:
            return node_info(self.kubectl.get(f"node/{name}"))
        except Unavailable as error:
            if FORBIDDEN in str(error):
                return unknown_node(name)
            if NOT_FOUND not in str(error):
                raise
        known = ""
        with contextlib.suppress(Unavailable):
            known = f": it has {', '.join(each.name for each in self._nodes()) or 'none'}"
        raise Unavailable(f"host {host}: the cluster has no node {name}{known}")

    @cached_property
    def version(self) -> str:
        """Return the version of the API server; "" if unknown."""
        with contextlib.suppress(Unavailable, ValueError):
            versions = json.loads(self.kubectl.must("version", "--output=json"))
            return str((versions.get("serverVersion") or {}).get("gitVersion", ""))
        return ""

    def images_on(self, node: NodeInfo) -> list[str]:
        """Return the images of the visible pods on a node: all pods, only system pods, or none."""
        only = f"--field-selector=spec.nodeName={node.name}"
        for where in ("--all-namespaces", "--namespace=kube-system"):
            with contextlib.suppress(Unavailable):
                pods = self.kubectl.get("pods", where, only)["items"]
                return [container["image"] for pod in pods for container in pod["spec"]["containers"]]
        return []

    def supply(self, options: NodeImages | None) -> ImageSupply:
        """Return the supply of images for its nodes, which the hosts of a run share."""
        make = partial(supply, self.run, self.kubectl, self.context, options)
        return self.run.share(f"images {self.kubectl} {options}", make)

    @contextmanager
    def started(self, request: PodRequest) -> Iterator[RunningPod]:
        """Start a pod and a stream to its launcher; both have ended when the context ends. Raises Unavailable."""
        self.kubectl.create(pod(request))
        try:
            record = self._await_running(request.name, LOAD_S if request.pull else START_S)
            if added := added_containers(record):
                self.run.say(f"the cluster adds containers to pod {request.name}: {', '.join(added)}")
            stream = SessionStream(
                lambda: self.kubectl.talk(request.name, (LAUNCHER, "--connect", SOCKET)),
                lambda carrier: self._judge(request, carrier),
                lambda what: self.run.say(f"pod {request.name}: {what}"),
            )
            try:
                with Launcher(
                    stream,
                    request.title or request.site,
                    lambda: stream.why or "its launcher does not answer",
                    environment_of(self.run.id),
                    START_S,
                    lambda: stream.disconnected_s,
                ) as launcher:
                    address, entry = str(record["status"].get("podIP") or ""), self.kubectl.entry(request.name)
                    yield RunningPod(request.name, address, launcher, record, entry)
            finally:
                stream.close()
        finally:
            with contextlib.suppress(Unavailable):  # it also ends with its owner
                self.kubectl.delete(f"pod/{request.name}")

    @contextmanager
    def made(self, manifest: Mapping[str, Any]) -> Iterator[Any]:
        """Make an object, and delete it when the context ends. Raises Unavailable."""
        made_object = self.kubectl.create(manifest)
        try:
            yield made_object
        finally:
            with contextlib.suppress(Unavailable):  # it also ends with its owner
                self.kubectl.delete(f"{made_object['kind'].lower()}/{made_object['metadata']['name']}")

    def _judge(self, request: PodRequest, carrier: Process) -> ConnectionLoss:
        """End the program that carried a pod's stream; return how it broke, and for how long it can return."""
        carrier.wait(_TOGETHER_S)
        silent = carrier.poll() is None
        done = carrier.stop()
        cut = f"node {request.node} does not answer" if silent else _how_ended(done)
        try:
            refusal = state_of(self._asking.get(f"pod/{request.name}", deadline_s=_JUDGE_S)).refusal
        except Denied as error:
            return self._denied(str(error), self._circumstances(request))
        except RequestRefused as error:
            return ConnectionLoss(f"{error}{self._circumstances(request)}")
        except Unavailable as error:
            if of_server := isinstance(error, Unreached):
                self._patience.away()
            return ConnectionLoss(f"{cut}; {error}", API_OUTAGE_S, of_server=of_server)
        self._patience.answered()
        if refusal:
            return ConnectionLoss(f"{with_remedy(refusal)}{self._circumstances(request)}")
        if silent or _NODE_SILENT.search(cut):
            return ConnectionLoss(cut, _NODE_PATIENCE_S)
        return self._judge_carrier(done, cut)

    def _judge_carrier(self, done: Completed, cut: str) -> ConnectionLoss:
        """Return how a stream broke whose pod still runs, by the last output of its kubectl."""
        if denied(done):
            return self._denied(with_remedy(cut))
        if refused(done):
            return ConnectionLoss(with_remedy(cut))
        return ConnectionLoss(cut, API_OUTAGE_S, of_server=away(done))

    def _denied(self, words: str, more: str = "") -> ConnectionLoss:
        """Return a break for a denied right, which an API server denies wrongly just after its start."""
        if self._patience.denied(words):
            return ConnectionLoss(words, API_OUTAGE_S + DENIED_S, of_server=True)
        return ConnectionLoss(f"{words}{more}")

    def _circumstances(self, request: PodRequest) -> str:
        """Return other facts about an ended pod: who evicted it, and whether its node is cordoned."""
        known = ""
        with contextlib.suppress(Unavailable):
            events = self._asking.get("events", _events_of(request.name), deadline_s=_JUDGE_S)
            known = f"; {reason}" if (reason := eviction(events)) else ""
        with contextlib.suppress(Unavailable):
            if node_info(self._asking.get(f"node/{request.node}", deadline_s=_JUDGE_S)).cordoned:
                known += f"; node {request.node} is cordoned"
        return known

    def _await_running(self, name: str, within_s: float) -> Mapping[str, Any]:
        """Wait until a pod's container runs. Raises Unavailable, at once if the cluster reports that it cannot."""
        deadline = time.monotonic() + within_s
        while True:
            record: Mapping[str, Any] = self.kubectl.get(f"pod/{name}", needed=True)
            state = state_of(record)
            if state.running:
                return record
            if refusal := state.refusal or self._unmountable(record):
                raise Unavailable(with_remedy(f"pod {name}: {refusal}"))
            if time.monotonic() > deadline:
                raise Unavailable(f"pod {name} did not start within {within_s:.0f} s: {self._warning(name)}")
            time.sleep(_LOOK_S)

    def _unmountable(self, record: Mapping[str, Any]) -> str:
        """Return why a path of its node cannot be in a pod, which only an event reports; "" if unknown."""
        if not any("hostPath" in volume for volume in record["spec"].get("volumes") or ()):
            return ""
        with contextlib.suppress(Unavailable):
            return absent_path(self.kubectl.get("events", selector_of_events(record)))
        return ""

    def _warning(self, name: str) -> str:
        with contextlib.suppress(Unavailable):
            events = self.kubectl.get("events", _events_of(name))
            return last_warning(events) or "the cluster does not say why"
        return "its events cannot be read"


def _events_of(pod: str) -> str:
    return f"--field-selector=involvedObject.name={pod}"


def _how_ended(done: Completed) -> str:
    if done.returncode == 0:  # also if the node has died (kubernetes/kubernetes#124571)
        return "the connection to it was cut: its kubelet, its node or the connection to the cluster failed"
    return f"the connection to it was cut: {failure_of(done)}"


@contextmanager
def _opened(cls: type[Cluster], run: RunContext, place: ClusterNamespace) -> Iterator[Cluster]:
    """Make the run's owner, which owns all other objects; it is deleted when the context ends."""
    program = build.ensure(run.cache, run.say).read_bytes()
    if len(program) > MOST_BYTES:
        raise Unavailable(
            f"the launcher ({len(program)} bytes) does not fit into a ConfigMap: build it with another compiler"
        )
    kubectl = place.kubectl({RUN_VARIABLE: run.id})
    note(run.state, place)
    created = kubectl.create(owner(run.id, program))
    kubectl = kubectl.patient()
    try:
        yield cls(run, kubectl, place.namespace, ObjectOwner.of(created), place.context)
    finally:
        with contextlib.suppress(Unavailable, EnvironmentLost, OSError):  # the end of the run tries again
            remove(kubectl, run.id)
