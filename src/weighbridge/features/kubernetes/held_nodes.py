"""Nodes that an Indexed Job reserves for a fleet, like an allocation of sbatch: one waiting pod on each."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.kubernetes.cleanup import ClusterNamespace, remove
from weighbridge.features.kubernetes.cluster import Cluster
from weighbridge.features.kubernetes.kubectl import Denied, Kubectl, RequestRefused
from weighbridge.features.kubernetes.objects import (
    ASKED,
    LAUNCHER,
    LIMITS,
    NOBODY,
    RENEWED,
    REQUESTS,
    RUN_LABEL,
    SOCKET,
    ObjectOwner,
    PodRequest,
    labels,
    last_warning,
    only_on,
    pod,
    selector_of_events,
    state_of,
    unknown_node,
)
from weighbridge.features.kubernetes.remedies import Right, remedy, rule, with_remedy
from weighbridge.features.kubernetes.supply import NodeImages
from weighbridge.features.kubernetes.survey import FOR_SOME, ClusterNodes
from weighbridge.model.host import RunContext
from weighbridge.model.plugin import Readiness

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
HOLDS_LABEL = "weighbridge.holds"
"""The label of pods that reserve a node; no two of them, of any fleets, run on one node."""
_QUEUES, _WORKLOADS = "localqueues.kueue.x-k8s.io", "workloads.kueue.x-k8s.io"
_JOBS = "Jobs that reserve nodes for a fleet"
HELD_S = 300
"""The seconds for which a Job reserves its nodes without renewal, in case its driver was killed."""
_RENEW_S = 60.0
_FIRST_S, _LAST_S = 0.3, 5.0
"""The seconds between two checks, at first and later."""
_PODS_S = 2.0
"""The seconds for which missing pods of the Job need no explanation."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A number of nodes to reserve, through a queue of Kueue if named."""

    number: int
    queue: str = ""
    had: Sequence[str] = ()
    """The nodes that the fleet had before."""
    only_had: bool = False
    """Whether only those nodes can be used, because enough of them exist."""


def holding_job(request: PodRequest, hold: Hold) -> dict[str, Any]:
    """Return the Job that reserves nodes: its pods follow the request, each on a different node.

    With a queue, it waits until Kueue admits it, even if Kueue's webhook does not see it.
    """
    one = pod(request)
    spec = one["spec"]
    spec["containers"][0]["command"] = [LAUNCHER, "--lease", str(spec["activeDeadlineSeconds"]), "--listen", SOCKET]
    separation = {
        "labelSelector": {"matchExpressions": [{"key": HOLDS_LABEL, "operator": "Exists"}]},
        "namespaceSelector": {},
        "topologyKey": "kubernetes.io/hostname",
    }
    spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [separation]}}
    if hold.had:
        terms = [only_on(name) for name in hold.had]
        spec["affinity"]["nodeAffinity"] = (
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            if hold.only_had
            else {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 100, "preference": term} for term in terms
                ]
            }
        )
    queue = {QUEUE_LABEL: hold.queue} if hold.queue else {}
    metadata = {**one["metadata"], "labels": {**labels(request.run_id, request.site), **queue}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completionMode": "Indexed",
            "completions": hold.number,
            "parallelism": hold.number,
            "activeDeadlineSeconds": HELD_S,
            **({"suspend": True} if hold.queue else {}),
            "template": {
                "metadata": {"labels": {**labels(request.run_id, request.site), HOLDS_LABEL: "node"}},
                "spec": spec,
            },
        },
    }


def _request(run_id: str, image: str, owner: ObjectOwner | None, *, pull: bool) -> PodRequest:
    """Return the pod that reserves a node, which every level of Pod Security allows."""
    return PodRequest(run_id, "nodes", "", image, owner, user=NOBODY, limits=LIMITS, requests=REQUESTS, pull=pull)


def readiness(kubectl: Kubectl, hold: Hold) -> Readiness:
    """Return whether this user can reserve nodes, the queue exists, and the API server would accept the Job now.

    Raises Unavailable if the API server does not answer.
    """
    resource, verbs = FOR_SOME[_JOBS]
    rights: list[Right] = [(verb, resource) for verb in verbs]
    if missing := kubectl.lacking(rights):
        may_not = ", ".join(f"{verb} {kind}" for verb, kind in missing)
        return Readiness(False, f"this user is not allowed to {may_not}", rule(missing, kubectl.namespace))
    if hold.queue and (reason := _no_queue(kubectl, hold.queue)):
        return Readiness(False, reason, "name another queue, or remove --queue")
    [reason] = kubectl.dry_run([holding_job(_request(ASKED.run_id, ASKED.image, ASKED.owner, pull=False), hold)])
    if reason:
        return Readiness(False, reason, _remedy(reason, kubectl.namespace))
    return Readiness(True)


def _remedy(reason: str, namespace: str) -> str:
    if "jobs.batch" in reason and "quota" in reason:
        return "wait until another Job has ended, or raise the quota"
    return remedy(reason, namespace) or "ask the cluster's administrator"


def _no_queue(kubectl: Kubectl, name: str) -> str:
    """Return why the namespace has no such queue; "" if it has, or if unknown."""
    try:
        queues = [each["metadata"]["name"] for each in kubectl.get(_QUEUES)["items"]]
    except RequestRefused as error:
        if "resource type" not in str(error):
            return ""
        return "--queue needs Kueue, which this cluster does not have"
    if name in queues:
        return ""
    return f"the namespace has no Kueue queue {name}: it has {', '.join(queues) or 'none'}"


@dataclass(frozen=True, slots=True)
class Held:
    """The reserved nodes, and the reason why the others are missing; ``refusal`` is a permanent reason."""

    nodes: tuple[str, ...]
    waits: str = ""
    refusal: str = ""


def held_by(job: Mapping[str, Any] | None, pods: Sequence[Mapping[str, Any]]) -> Held:
    """Return what a Job has reserved, in the cluster's own words."""
    if job is None or job["metadata"].get("deletionTimestamp"):
        return Held((), refusal="the Job that reserves the nodes was deleted")
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            reason = condition.get("message") or condition.get("reason")
            return Held((), refusal=f"the Job that reserves the nodes failed: {reason}")
    if job["spec"].get("suspend"):
        return Held((), "the Job is suspended")
    nodes, waits = set[str](), dict[str, None]()
    for pod_record in pods:
        if pod_record["metadata"].get("deletionTimestamp"):
            continue
        state, node = state_of(pod_record), str(pod_record["spec"].get("nodeName") or "")
        if state.running:
            nodes.add(node)
        elif not node or (pod_record.get("status") or {}).get("phase") == "Failed":  # the Job makes another one
            waits |= {state.refusal: None} if state.refusal else {}
        elif state.refusal:
            return Held((), refusal=with_remedy(f"node {node}: {state.refusal}"))
    return Held(tuple(sorted(nodes)), "; ".join(waits))


@contextmanager
def held_nodes(
    run: RunContext, place: ClusterNamespace, hold: Hold, images: NodeImages | None, say: Callable[[str], None]
) -> Iterator[tuple[str, ...]]:
    """Wait until the nodes are reserved, and keep them until the context ends. Raises Unavailable.

    Objects of an earlier driver with this run's id are removed first. ``say`` reports at once what it waits for.
    """
    remove(place.kubectl(), run.id)
    cluster = Cluster.of(run, place)
    supply = cluster.supply(images)
    try:
        known = ClusterNodes.of(cluster.kubectl)
        usable = known.usable
    except Denied:
        usable = []
    image_names = [supply.launcher(each) for each in usable or [unknown_node("")]]
    request = _request(run.id, image_names[0], cluster.owner, pull=supply.pulls)
    had = {*hold.had} & {each.name for each in usable}
    hold = Hold(hold.number, hold.queue, sorted(had), only_had=len(had) >= hold.number)
    with (
        cluster.made(holding_job(request, hold)) as job,
        _renewed(cluster.kubectl.impatient(), job["metadata"]["name"], say),
    ):
        yield _awaited(cluster.kubectl, run.id, hold, say)


def _awaited(kubectl: Kubectl, run_id: str, hold: Hold, say: Callable[[str], None]) -> tuple[str, ...]:
    began, pause, announced = time.monotonic(), _FIRST_S, ""
    while True:
        job, pods = _looked_at(kubectl, run_id)
        held = held_by(job, pods)
        if held.refusal:
            raise Unavailable(held.refusal)
        if len(held.nodes) >= hold.number:
            return held.nodes
        waits = held.waits
        if job is not None and job["spec"].get("suspend"):
            waits += f" until Kueue admits it: {reason}" if (reason := _of_kueue(kubectl, job, hold.queue)) else ""
        elif len(pods) < hold.number and time.monotonic() - began > _PODS_S:
            waits = waits or _why_no_pods(kubectl, job)
        sentence = (
            f"waiting for nodes: {len(held.nodes)} of {hold.number} are reserved{f': {waits}' if waits else ''}"
        )
        if sentence != announced and (waits or announced):
            say(sentence)
            announced = sentence
        time.sleep(pause)
        pause = min(_LAST_S, 1.2 * pause)


def _looked_at(kubectl: Kubectl, run_id: str) -> tuple[Mapping[str, Any] | None, list[Mapping[str, Any]]]:
    every = kubectl.get("jobs,pods", f"--selector={RUN_LABEL}={run_id}", needed=True)["items"]
    jobs = [each for each in every if each["kind"] == "Job"]
    return (jobs[0] if jobs else None), [each for each in every if each["kind"] == "Pod"]


def _why_no_pods(kubectl: Kubectl, job: Mapping[str, Any] | None) -> str:
    """Return why the Job's pods are missing, which only its events report (a quota, a webhook)."""
    with contextlib.suppress(Unavailable):
        if job is not None:
            return with_remedy(last_warning(kubectl.get("events", selector_of_events(job))))
    return ""


def _of_kueue(kubectl: Kubectl, job: Mapping[str, Any], queue: str) -> str:
    """Return Kueue's message about a Job that waits in a queue, if this user can read it."""
    with contextlib.suppress(Unavailable):
        for workload in kubectl.get(_WORKLOADS)["items"]:
            owners = workload["metadata"].get("ownerReferences") or ()
            if any(owner.get("uid") == job["metadata"]["uid"] for owner in owners):
                conditions = (workload.get("status") or {}).get("conditions") or ()
                words = [str(item.get("message", "")) for item in conditions if item.get("status") == "False"]
                return next(filter(None, words), f"it waits in queue {queue}")
    return f"it waits in queue {queue}" if queue else ""


@contextmanager
def _renewed(kubectl: Kubectl, job: str, say: Callable[[str], None]) -> Iterator[None]:
    """Renew the Job's reservation beyond `HELD_S` repeatedly until the context ends."""
    ended = threading.Event()

    def renew() -> None:
        failed, started = False, None
        while not ended.wait(_RENEW_S):
            now = time.monotonic()
            lasts = HELD_S + (round(now - started + _RENEW_S) if started is not None else 0)
            changes = {
                "metadata": {"annotations": {RENEWED: datetime.now(UTC).isoformat(timespec="seconds")}},
                "spec": {"activeDeadlineSeconds": lasts},
            }
            try:
                status = kubectl.patch("job", job, changes).get("status") or {}
            except (Unavailable, EnvironmentLost) as error:
                if not failed:
                    say(f"the cluster might give the nodes to others, because their Job cannot be renewed: {error}")
                failed = True
            else:  # its time starts when it is no longer suspended
                failed, started = False, (started or now) if status.get("startTime") else None

    thread = threading.Thread(target=renew, name="renew reserved nodes", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
