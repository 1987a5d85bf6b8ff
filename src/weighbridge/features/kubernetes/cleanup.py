"""Orphaned objects of killed runs in clusters, located by notes made before a run's first object."""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes import services
from weighbridge.features.kubernetes.kubectl import FORBIDDEN, Kubectl
from weighbridge.features.kubernetes.notes import Notes
from weighbridge.features.kubernetes.objects import RENEWED, RUN_LABEL, has_ended, runs_of
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RemoteRun, RunFolders

KINDS = "configmaps,pods"
"""The kinds of objects that every run makes."""
FURTHER_KINDS = ("services", "networkpolicies", "persistentvolumeclaims", "jobs")
"""Further kinds that some runs make; a user who cannot list a kind has made none."""
GONE_S = 30.0
FORCE_S = 10.0
"""The seconds after which a pod is removed by force: our pods end without a connection."""


@dataclass(frozen=True, slots=True)
class ClusterNamespace:
    """A namespace of a cluster, as given to kubectl."""

    context: str
    namespace: str
    kubeconfig: str

    def kubectl(self, variables: Mapping[str, str] | None = None) -> Kubectl:
        """Return the user's kubectl for this place."""
        return Kubectl(self.context, self.namespace, self.kubeconfig, variables)

    def resolved(self) -> "ClusterNamespace":
        """Return the place with explicit names, because the current ones can change later."""
        kubectl = self.kubectl()
        usual = filter(None, os.environ.get("KUBECONFIG", "").split(os.pathsep))
        return ClusterNamespace(
            self.context or kubectl.current_context(),
            self.namespace or kubectl.current_namespace(),
            self.kubeconfig or os.pathsep.join(os.path.abspath(each) for each in usual),  # noqa: PTH100 - not resolved
        )

    @property
    def words(self) -> str:
        """Return its name for a sentence."""
        return f"context {self.context or 'of kubectl'}"


NOTES = Notes("kubernetes.json", ClusterNamespace)


def note(state: Path, place: ClusterNamespace) -> None:
    """Record, before any object is made there, that a run has objects in a place."""
    places = {*places_of(state), place}
    NOTES.write(state, sorted(places, key=str))


def places_of(state: Path) -> list[ClusterNamespace]:
    """Return the places with objects of a run, by its notes; empty if they are unreadable."""
    return NOTES.read(state)


def objects_of(kubectl: Kubectl, run_id: str) -> list[tuple[str, str]]:
    """Return (kind, name) of each object of a run. Raises Unavailable."""
    items = _labelled(kubectl, f"--selector={RUN_LABEL}={run_id}")
    return [(kind, name) for run, kind, name in runs_of(items) if run == run_id]


def _labelled(kubectl: Kubectl, selector: str) -> list[Mapping[str, Any]]:
    items = [*kubectl.get(KINDS, selector, needed=True)["items"]]
    with contextlib.suppress(Unavailable):
        return [*items, *kubectl.get(",".join(FURTHER_KINDS), selector)["items"]]
    for kind in FURTHER_KINDS:  # this user might not be allowed to list some
        with contextlib.suppress(Unavailable):
            items += kubectl.get(kind, selector)["items"]
    return items


def remove(kubectl: Kubectl, run_id: str, within_s: float = GONE_S) -> None:
    """Delete all objects of a run in a place, and wait. Raises Unavailable, or OSError if some remain."""
    began, forced, swept, freed = time.monotonic(), False, False, False
    selector = f"--selector={RUN_LABEL}={run_id}"
    kubectl.delete(KINDS, selector)
    while objects := objects_of(kubectl, run_id):
        if not freed and any(kind == "Job" for kind, _ in objects):  # it would make its pods again
            kubectl.delete("jobs", selector)
            freed = True
        if not swept and any(services.is_added(run_id, name) for _, name in objects):
            services.remove(kubectl, run_id)
            began, swept = time.monotonic(), True
        took_s = time.monotonic() - began
        if took_s > FORCE_S and not forced:  # its node does not answer; the pod ends there by itself
            kubectl.delete("pods", selector, "--force", "--grace-period=0")
            forced = True
        if took_s > within_s:
            names = ", ".join(f"{kind} {name}" for kind, name in objects)
            raise OSError(f"still in the cluster {within_s:g} s after they were deleted: {names}")
        time.sleep(0.3)


STARTING_S = 900.0
"""The seconds for which a run can have no pod, because it first builds and loads images."""


def runs_at(items: Sequence[Mapping[str, Any]], now: datetime) -> Iterator[RemoteRun]:
    """Yield each run with any of these objects; it counts as alive with an unfinished pod, or if it is new."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for item in items:
        for run, _, _ in runs_of([item]):
            runs.setdefault(run, []).append(item)
    for run, objects in sorted(runs.items()):
        unfinished = [each for each in objects if each.get("kind") == "Pod" and not has_ended(each)]
        times = [_last_known(each["metadata"]) for each in objects]
        alive = f"pod {unfinished[0]['metadata']['name']} has not ended" if unfinished else ""
        if not alive and (now - max(times)).total_seconds() < STARTING_S:
            alive = f"it created objects less than {STARTING_S / 60:g} minutes ago"
        names = [(kind, name) for _, kind, name in runs_of(objects)]
        yield RemoteRun(run, tuple(_leftovers(run, names)), alive)


def _last_known(metadata: Mapping[str, Any]) -> datetime:
    """Return when a run last recorded an object: at its creation, or at the renewal of its reserved nodes."""
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    with contextlib.suppress(ValueError, TypeError):
        return max(created, datetime.fromisoformat((metadata.get("annotations") or {}).get(RENEWED, "")))
    return created


def _leftovers(run: str, objects: Sequence[tuple[str, str]]) -> Iterator[Leftover]:
    """Yield the objects of a run, with one line for all Services that it has added."""
    added = [name for kind, name in objects if kind == "Service" and services.is_added(run, name)]
    hidden = {*added[1:]}
    for kind, name in objects:
        if name not in hidden:
            more = f" and {len(added) - 1:,} like it" if hidden and name == added[0] else ""
            yield Leftover(run, f"Kubernetes {kind}", f"{name}{more}")


class ClusterObjects(Cleanup):
    """Pods and the ConfigMap that owns them, in the clusters in the notes of this machine's runs."""

    label = "objects in Kubernetes clusters"

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield each object of a run with notes. Raises OSError at the end if a cluster does not answer."""
        failures: list[str] = []
        for run, place in NOTES.of_runs(folders):
            try:
                objects = objects_of(place.kubectl(), run)
            except Unavailable as error:
                notes = folders.states / run / NOTES.name
                gone = "" if FORBIDDEN in str(error) else f"; if the cluster no longer exists, delete {notes}"
                failures.append(f"{place.words} (run {run}): {error}{gone}")
            else:
                yield from _leftovers(run, objects)
        if failures:
            raise OSError("; ".join(failures))

    def find_at(self, context: str, namespace: str) -> Iterator[RemoteRun]:
        """Yield runs of all machines in a namespace of a context. Raises OSError if the cluster does not answer."""
        kubectl = Kubectl(context, namespace)
        try:
            yield from runs_at(_labelled(kubectl, f"--selector={RUN_LABEL}"), kubectl.clock())
        except Unavailable as error:
            raise OSError(str(error)) from error

    def remove_at(self, context: str, namespace: str, run: str) -> None:
        """Delete a run's objects there. Raises OSError if the cluster does not answer, or keeps some."""
        try:
            remove(Kubectl(context, namespace), run)
        except Unavailable as error:
            raise OSError(str(error)) from error

    def remove(self, run: OrphanedRun) -> None:
        """Delete the objects in the run's notes. Raises OSError if a cluster does not answer, or keeps some."""
        for place in places_of(run.state):
            try:
                remove(place.kubectl(), run.id)
            except Unavailable as error:
                raise OSError(f"{place.words}: {error}") from error
