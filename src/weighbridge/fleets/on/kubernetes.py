"""Nodes of a Kubernetes cluster, which this machine's kubectl reaches."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from weighbridge.errors import Unavailable
from weighbridge.fleets.on._here import DrivenHere
from weighbridge.model.machine_provider import MACHINE_NAME, ProviderOptions
from weighbridge.model.options import ABSOLUTE, Brings
from weighbridge.model.plugin import Readiness


def _way(words: str) -> str:
    from weighbridge.hosts.kubernetes.supply import images_of

    images_of(words)
    return words


class KubernetesNodes(ProviderOptions):
    """The nodes of a cluster, those with some labels, or so many of them."""

    kind: Literal["kubernetes"] = "kubernetes"
    nodes: Annotated[
        str | None,
        Field(
            min_length=1, description="How many nodes, or the labels of those to take (pool=perf); default: all ready"
        ),
    ] = None
    context: Annotated[
        str | None,
        Field(min_length=1, description="The context of the kubeconfig; default: the current one"),
        Brings.MACHINE,
    ] = None
    namespace: Annotated[str | None, Field(min_length=1, description="Default: the context's")] = None
    kubeconfig: Annotated[
        Annotated[str, ABSOLUTE] | None, Field(description="A kubeconfig in place of yours"), Brings.KUBECONFIG
    ] = None
    images: Annotated[
        Annotated[str, AfterValidator(_way)] | None,
        Field(description="How images get to nodes: kind, minikube, k3d, containerd, pull, REGISTRY/REPOSITORY"),
    ] = None
    privileged: Annotated[bool, Field(description="Allow privileged pods: for environments of kind native")] = False

    @property
    def number(self) -> int | None:
        """How many nodes are wanted; None: as many as there are."""
        return int(self.nodes) if self.nodes and self.nodes.isdecimal() else None

    @property
    def selector(self) -> str:
        """The labels of the nodes to take; "": any."""
        return self.nodes if self.nodes and self.number is None else ""

    @property
    def description(self) -> str:
        """Words for the plan."""
        which = (
            f"{self.number} nodes" if self.number else f"nodes with {self.selector}" if self.selector else "all nodes"
        )
        return f"{which} of {f'context {self.context}' if self.context else 'kubectl'}"


class Kubernetes(DrivenHere):
    """Each run is driven from this machine, with a node, or two, in the place of the study's hosts."""

    kind = "kubernetes"
    summary = "nodes of a Kubernetes cluster, by your own kubectl"
    options = KubernetesNodes
    programs: ClassVar = ("kubectl",)

    def readiness(self, options: Any | None = None) -> Readiness:
        """Whether kubectl lists nodes; a kubeconfig that is named is not used for that."""
        from weighbridge.hosts.kubernetes import survey

        if options is None or options.kubeconfig is not None:
            return Readiness(True)
        try:
            return survey.nodes(_kubectl(options))
        except Unavailable as why:
            return Readiness(False, str(why), "weighbridge doctor --cluster")

    def count(self, options: Any) -> int:
        """As many as were asked for, else all that are ready."""
        return len(self.machines(options))

    def machines(self, options: Any) -> tuple[str, ...]:
        """Return the nodes that can have pods, by name. Raises Unavailable where they are fewer than asked."""
        from weighbridge.hosts.kubernetes.objects import node_info

        words = ("nodes", *((f"--selector={options.selector}",) if options.selector else ()))
        every = [node_info(each) for each in _kubectl(options).get(*words)["items"]]
        usable = sorted(each.name for each in every if each.ready and not each.cordoned)
        labels = f" with {options.selector}" if options.selector else ""
        if len(usable) < (options.number or 1):
            raise Unavailable(
                f"{len(usable)} of the cluster's {len(every)} nodes{labels} can have pods"
                + (f", fewer than the {options.number} of --nodes" if options.number else ": see 'kubectl get nodes'")
            )
        names = tuple(map(_machine, usable[: options.number]))
        if long := [name for name in names if re.fullmatch(MACHINE_NAME, name) is None]:
            raise Unavailable(f"node {long[0]} has too long a name for a fleet: choose others with --nodes")
        return names

    def allotted(self, options: Any) -> tuple[str, ...]:
        """Return the nodes."""
        return self.machines(options)

    def host(self, options: Any, machine: str) -> Mapping[str, Any]:
        """Return the node as a host."""
        from weighbridge.hosts.kubernetes.supply import images_of, usual_images

        named = {
            key: getattr(options, key) for key in ("context", "namespace", "kubeconfig") if getattr(options, key)
        }
        images = images_of(options.images or usual_images(options.context or _current_context(options)))
        privileged = {"privileged": True} if options.privileged else {}
        return {
            "kind": "kubernetes",
            "node": machine.replace("_", "-"),
            **named,
            **({"images": images} if images else {}),
            **privileged,
        }


def _machine(node: str) -> str:
    """Return a node's name with no two dashes in a row; such names have no ``_`` of their own."""
    return node.replace("--", "-_")


def _current_context(options: KubernetesNodes) -> str:
    with suppress(Unavailable):
        return str(_kubectl(options).current_context())
    return ""


def _kubectl(options: KubernetesNodes) -> Any:
    from weighbridge.hosts.kubernetes.leavings import Place

    return Place(options.context or "", options.namespace or "", options.kubeconfig or "").kubectl()


PLUGIN = Kubernetes()
