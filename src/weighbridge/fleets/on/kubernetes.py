"""The nodes of a Kubernetes cluster, by the user's own kubectl."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from weighbridge.errors import Unavailable
from weighbridge.fleets.on._driven_here import DrivenHere
from weighbridge.hosts.kubernetes import survey
from weighbridge.hosts.kubernetes.leavings import Place
from weighbridge.hosts.kubernetes.supply import images_of, usual_images
from weighbridge.model.machine_provider import MACHINE_NAME, ProviderOptions
from weighbridge.model.options import Brings
from weighbridge.model.plugin import Readiness

_WORD = r"^[^\s-]\S{0,252}$"


def _known_way(words: str) -> str:
    images_of(words)
    return words


class KubernetesOptions(ProviderOptions):
    """Nodes of a cluster. ``context`` and ``namespace`` are kubectl's own unless they are named."""

    kind: Literal["kubernetes"] = "kubernetes"
    nodes: Annotated[
        str | None,
        Field(pattern=_WORD, description="Labels of the nodes, as for kubectl; default: all that are ready"),
    ] = None
    context: Annotated[
        str | None,
        Field(pattern=_WORD, description="The context of the kubeconfig; default: the current one"),
        Brings.MACHINE,
    ] = None
    namespace: Annotated[
        str | None, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", description="Default: the context's")
    ] = None
    images: Annotated[
        str,
        AfterValidator(_known_way),
        Field(
            description="How nodes get images: kind, minikube, k3d, containerd, REGISTRY/REPOSITORY, pull or a "
            "'COMMAND'; default: by the context's name"
        ),
    ] = ""
    privileged: Annotated[bool, Field(description="Allow privileged pods, for environments of kind native")] = False

    @property
    def place(self) -> Place:
        """The cluster and the namespace, as kubectl is told them."""
        return Place(self.context or "", self.namespace or "", "")

    @property
    def description(self) -> str:
        """Words for the plan."""
        cluster = f"context {self.context}" if self.context else "kubectl's own context"
        return f"the nodes{f' with {self.nodes}' if self.nodes else ''} of a Kubernetes cluster, {cluster}"


class Kubernetes(DrivenHere):
    """Each run is driven from this machine, with pods on the nodes in the place of the study's hosts."""

    kind = "kubernetes"
    summary = "the nodes of a Kubernetes cluster, by your own kubectl"
    options = KubernetesOptions
    programs: ClassVar = ("kubectl", "setpriv")

    def readiness(self, options: Any | None = None) -> Readiness:
        """Whether the cluster's nodes may be listed."""
        if options is None:
            return Readiness(True)
        try:
            return survey.nodes(options.place.kubectl())
        except Unavailable as error:
            return Readiness(False, str(error), "weighbridge doctor --cluster")

    def count(self, options: Any) -> int:
        """As many as are ready."""
        return len(self.machines(options))

    def machines(self, options: Any) -> tuple[str, ...]:
        """Return the nodes that are ready and take pods."""
        nodes = survey.usable_nodes(options.place.kubectl(), options.nodes or "")
        if long := [node for node in nodes if re.fullmatch(MACHINE_NAME, _machine(node)) is None]:
            raise Unavailable(f"node {long[0]} has too long a name for a fleet: choose others with --nodes")
        return tuple(map(_machine, nodes))

    def allotted(self, options: Any) -> tuple[str, ...]:
        """Return the nodes that are ready now."""
        return self.machines(options)

    def host(self, options: Any, machine: str) -> Mapping[str, Any]:
        """Return a node as a study's host."""
        place = {key: value for key in ("context", "namespace") if (value := getattr(options, key))}
        words = options.images or usual_images(options.context or _current(options.place))
        images = {"images": images_of(words)} if words else {}
        privileged = {"privileged": True} if options.privileged else {}
        return {"kind": "kubernetes", "node": machine.replace("_", "-"), **place, **images, **privileged}


def _machine(node: str) -> str:
    """Return a node's name with no two dashes in a row; such names have no ``_`` of their own."""
    return node.replace("--", "-_")


def _current(place: Place) -> str:
    with suppress(Unavailable):
        return place.kubectl().current_context()
    return ""


PLUGIN = Kubernetes()
