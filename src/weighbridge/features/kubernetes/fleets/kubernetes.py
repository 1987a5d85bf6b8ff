"""Nodes of a Kubernetes cluster that this machine's kubectl reaches."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from weighbridge.errors import Unavailable
from weighbridge.features.fleets.driven_here import DrivenHere, DrivenHereOptions
from weighbridge.features.fleets.machine_provider import MACHINE_NAME, Wanted
from weighbridge.model.host import RunContext
from weighbridge.model.options import ABSOLUTE, External
from weighbridge.model.plugin import Readiness

_WORD = r"[^\s-]\S{0,252}"
"""A pattern of contexts that a study can name."""


def _way(words: str) -> str:
    from weighbridge.features.kubernetes.supply import images_of

    images_of(words)
    return words


class KubernetesNodes(DrivenHereOptions):
    """All nodes of a cluster, those with some labels, or a number of them, which a Job reserves."""

    kind: Literal["kubernetes"] = "kubernetes"
    nodes: Annotated[
        str | None,
        Field(
            min_length=1,
            description="Number of nodes, which a Job then reserves, or the labels of the nodes to use (pool=perf); "
            "default: every node that can run pods",
        ),
    ] = None
    queue: Annotated[
        str | None,
        Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$", description="The Kueue queue that admits the Job"),
    ] = None
    context: Annotated[
        str | None,
        Field(min_length=1, description="Context of the kubeconfig; default: the current context"),
        External.MACHINE,
    ] = None
    namespace: Annotated[
        str | None, Field(min_length=1, description="Namespace; default: the namespace of the context")
    ] = None
    kubeconfig: Annotated[
        Annotated[str, ABSOLUTE] | None,
        Field(description="A kubeconfig to use instead of your own"),
        External.KUBECONFIG,
    ] = None
    images: Annotated[
        Annotated[str, AfterValidator(_way)] | None,
        Field(description="How images reach the nodes: kind, minikube, k3d, containerd, pull, REGISTRY/REPOSITORY"),
    ] = None
    privileged: Annotated[
        bool, Field(description="Allow privileged pods, which environments of kind native need")
    ] = False
    server: str = ""
    """The API server of the context when the fleet was submitted; "" if unknown."""

    @model_validator(mode="after")
    def _a_number_in_a_queue(self) -> Self:
        if self.nodes == "0":
            raise ValueError("--nodes 0: the number must be at least 1")
        if self.queue and self.number is None:
            raise ValueError("--queue needs --nodes NUMBER")
        return self

    @property
    def number(self) -> int | None:
        """Return the requested number of nodes; None means all."""
        return int(self.nodes) if self.nodes and self.nodes.isdecimal() else None

    @property
    def selector(self) -> str:
        """Return the labels of the nodes to use; "" means any."""
        return self.nodes if self.nodes and self.number is None else ""

    @property
    def description(self) -> str:
        """Return words for the plan."""
        which = (
            f"{self.number} nodes" if self.number else f"nodes with {self.selector}" if self.selector else "all nodes"
        )
        how = f", through queue {self.queue}" if self.queue else ""
        return f"{which} of {f'context {self.context}' if self.context else 'kubectl'}{how}"


class KubernetesProvider(DrivenHere):
    """Each run is driven from this machine, with one or two nodes instead of the study's hosts."""

    kind = "kubernetes"
    summary = "nodes of a Kubernetes cluster, through your own kubectl"
    options = KubernetesNodes
    programs: ClassVar = ("kubectl",)

    def settled(self, options: Any) -> Any:
        """Return options with the current context, its namespace and its API server, which can change later."""
        current = _kubectl(options).configuration()
        named = {"context": current.context, "namespace": current.namespace, "server": current.server}
        return options.model_copy(update=named) if re.fullmatch(_WORD, current.context) else options

    def ready(self, options: Any | None = None) -> Readiness:
        """Return whether kubectl lists nodes, or a Job can reserve some; not checked for a named kubeconfig."""
        from weighbridge.features.kubernetes import held_nodes, survey

        if options is None or options.kubeconfig is not None:
            return Readiness(True)
        try:
            if options.number is not None:  # the Job can wait for nodes
                return held_nodes.readiness(_kubectl(options), _hold(options))
            return survey.nodes(_kubectl(options))
        except Unavailable as error:
            return Readiness(False, str(error), "weighbridge doctor --cluster")

    def count(self, options: Any) -> int:
        """Return the requested number, or all usable nodes. Raises Unavailable if there are too few."""
        from weighbridge.features.kubernetes import kubectl
        from weighbridge.features.kubernetes.survey import ClusterNodes

        _require_same_cluster(options)
        if options.number is None:
            return len(self.machines(options) or ())
        with suppress(kubectl.Denied):
            ClusterNodes.of(_kubectl(options)).require_some_time(options.number)
        return int(options.number)

    def machines(self, options: Any) -> tuple[str, ...] | None:
        """Return the usable nodes, by name; None if a Job is to reserve some. Raises Unavailable."""
        return None if options.number is not None else self.allotted(options)

    def allotted(self, options: Any) -> tuple[str, ...]:
        """Return the usable nodes, by name. Raises Unavailable if there are none."""
        from weighbridge.features.kubernetes.survey import ClusterNodes

        nodes = ClusterNodes.of(_kubectl(options), options.selector).require()
        return _machines(sorted(each.name for each in nodes))

    def allotment(self, options: Any, wanted: Wanted) -> AbstractContextManager[tuple[str, ...]]:
        """Let a Job reserve the requested number of nodes, and wait for them."""
        return super().allotment(options, wanted) if options.number is None else _held(options, wanted)

    def host(self, options: Any, machine: str) -> Mapping[str, Any]:
        """Return the node as a host."""
        from weighbridge.features.kubernetes.supply import images_of, usual_images

        named = {
            key: getattr(options, key) for key in ("context", "namespace", "kubeconfig") if getattr(options, key)
        }
        images = images_of(options.images or usual_images(options.context or _current_context(options)))
        privileged = {"privileged": True} if options.privileged else {}
        return {
            "kind": "kubernetes",
            "node": _node(machine),
            **named,
            **({"images": images} if images else {}),
            **privileged,
        }

    def planned_host(self, options: Any, machine: str) -> Mapping[str, Any]:
        """Return a host that stands for any node."""
        return {key: value for key, value in self.host(options, machine).items() if key != "node"}


@contextmanager
def _held(options: KubernetesNodes, wanted: Wanted) -> Iterator[tuple[str, ...]]:
    """Reserve nodes as the run with the fleet's id, which `clean` knows by its label and notes as any other."""
    from weighbridge.features.fleets.study import with_own
    from weighbridge.features.kubernetes.cleanup import ClusterNamespace
    from weighbridge.features.kubernetes.held_nodes import held_nodes
    from weighbridge.features.kubernetes.supply import NodeImages
    from weighbridge.runner import run_lock
    from weighbridge.runner.clean import sweep_and_forget
    from weighbridge.runner.signals import shield
    from weighbridge.user_cache import cache_folder

    host = with_own(wanted.hosts, PLUGIN.host(options, "any"))
    images = NodeImages.model_validate(host["images"]) if host.get("images") else None
    place = ClusterNamespace(*(host.get(key) or "" for key in ("context", "namespace", "kubeconfig"))).resolved()
    had = [_node(each) for each in wanted.had]
    with run_lock.lock_run(wanted.id, "clean") as folder, ExitStack() as stack:
        if folder is None:
            raise Unavailable("the nodes of an earlier driver of this fleet are still being released: try again")

        def give_back() -> None:
            with shield():
                held.close()
                for failure in sweep_and_forget(wanted.id):
                    wanted.say(failure)

        held = ExitStack()
        stack.callback(give_back)
        run = RunContext(wanted.id, folder, cache_folder(), held, wanted.say)
        hold = _hold(options, had)
        yield _machines(held.enter_context(held_nodes(run, place, hold, images, wanted.say)))


def _hold(options: KubernetesNodes, had: Sequence[str] = ()) -> Any:
    from weighbridge.features.kubernetes.held_nodes import Hold

    return Hold(options.number or 1, options.queue or "", had)


def _machines(nodes: Sequence[str]) -> tuple[str, ...]:
    """Return nodes as machines of a fleet. Raises Unavailable."""
    names = tuple(map(_machine, nodes))
    if long := [name for name in names if re.fullmatch(MACHINE_NAME, name) is None]:
        raise Unavailable(f"the name of node {long[0]} is too long for a fleet: choose other nodes with --nodes")
    return names


def _require_same_cluster(options: KubernetesNodes) -> None:
    """Raise Unavailable if the context now belongs to another cluster than when the fleet was submitted."""
    server = _kubectl(options).configuration().server if options.server else ""
    if server and server != options.server:
        raise Unavailable(
            f"context {options.context} now points to {server}, but the fleet is on {options.server}: set "
            "KUBECONFIG to the value that it had when the fleet was submitted"
        )


def _machine(node: str) -> str:
    """Return a node's name without two adjacent dashes; node names contain no ``_``."""
    return node.replace("--", "-_")


def _node(machine: str) -> str:
    return machine.replace("_", "-")


def _current_context(options: KubernetesNodes) -> str:
    with suppress(Unavailable):
        return str(_kubectl(options).current_context())
    return ""


def _kubectl(options: KubernetesNodes) -> Any:
    from weighbridge.features.kubernetes.cleanup import ClusterNamespace

    return ClusterNamespace(options.context or "", options.namespace or "", options.kubeconfig or "").kubectl()


PLUGIN = KubernetesProvider()
