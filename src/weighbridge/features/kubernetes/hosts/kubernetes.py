"""A node of a Kubernetes cluster, reached by the user's own kubectl."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes.cleanup import ClusterNamespace, ClusterObjects
from weighbridge.features.kubernetes.kubectl import Denied, Unreached
from weighbridge.features.kubernetes.manifest import asked_pod, quality_of_service
from weighbridge.features.kubernetes.objects import asked_objects, user_of
from weighbridge.features.kubernetes.services import MOST
from weighbridge.features.kubernetes.supply import LoadedImages, NodeImages, images_of, usual_images
from weighbridge.features.kubernetes.volumes import NodeFolders
from weighbridge.model.facts import QUALITY_OF_SERVICE
from weighbridge.model.host import Host, HostTraits, RunContext
from weighbridge.model.host_kind import HostKind, HostOptions
from weighbridge.model.options import ABSOLUTE, External
from weighbridge.model.plugin import Readiness
from weighbridge.model.userland import Userland, Userlands

_WORD = r"^[^\s-]\S{0,252}$"
_NAME = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"


_Number = Annotated[int, Field(ge=1, le=MOST)]


def _one_number(raw: Any) -> Any:
    if isinstance(raw, list | tuple) and all(isinstance(each, int) for each in raw):
        numbers = ", ".join(map(str, raw))
        raise ValueError(
            f"the number of Services cannot change during a run: run the study once for each of {numbers}, then use "
            "'weighbridge compare RUN RUN'"
        )
    return raw


class KubernetesOptions(HostOptions):
    """A node of a cluster. ``context`` and ``namespace`` are kubectl's own unless they are named."""

    traits: ClassVar[HostTraits] = HostTraits(
        own_kernel=True, attachable=False, managed=True,
        without_native="the namespaces of a node need a privileged pod: set 'privileged: true' on its host",
    )  # fmt: skip
    kind: Literal["kubernetes"]
    node: Annotated[
        str | None,
        Field(pattern=_NAME, description="Name of the node; default: a ready node that no other host uses"),
        External.MACHINE,
    ] = None
    selector: Annotated[
        str | None, Field(pattern=_WORD, description="Label selector of the nodes to choose from, as for kubectl")
    ] = None
    context: Annotated[
        str | None,
        Field(pattern=_WORD, description="Context of the kubeconfig; default: the current context"),
        External.MACHINE,
    ] = None
    namespace: Annotated[
        str | None,
        Field(
            pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            description="Namespace; default: the namespace of the context",
        ),
    ] = None
    kubeconfig: Annotated[
        Annotated[str, ABSOLUTE] | None,
        Field(description="A kubeconfig to use instead of your own"),
        External.KUBECONFIG,
    ] = None
    images: Annotated[
        NodeImages | None, Field(description="How images reach the node; default: they must be there already")
    ] = None

    privileged: Annotated[
        bool,
        Field(
            description="Allow privileged pods on the node, for environments of kind native and to see its "
            "packet filter"
        ),
    ] = False
    pod_security: Annotated[
        Literal["baseline", "restricted"] | None,
        Field(
            description="Follow a Pod Security level: no pod uses the node's network, and with restricted no "
            "program runs "
            "as root"
        ),
    ] = None

    services: Annotated[
        _Number | None,
        BeforeValidator(_one_number, json_schema_input_type=_Number | None),
        Field(description="Number of Services that the run adds to the cluster and removes at its end"),
    ] = None

    @model_validator(mode="after")
    def _one_level(self) -> Self:
        if self.privileged and self.pod_security is not None:
            raise ValueError(
                "privileged pods do not follow any Pod Security level: remove 'privileged' or 'pod_security'"
            )
        return self

    @property
    def own_traits(self) -> HostTraits:
        """Native sites are in privileged pods alone; what ``pod_security`` forbids has no pod."""
        if self.privileged:
            return replace(self.traits, without_native="")
        if self.pod_security is not None:
            why = f"with 'pod_security: {self.pod_security}' no pod can use the node's network: use 'network: pod'"
            return replace(self.traits, without_network=why)
        return self.traits

    @property
    def networks(self) -> Set[str]:
        """Return the network of the cluster, by the study's name of it: its nodes reach one another."""
        return frozenset({f"kubernetes {self.kubeconfig or ''} {self.context or ''}"})

    @property
    def image_way(self) -> str:
        """Return how ``images`` reach the node."""
        if self.images is not None:
            return self.images.description
        return "must be on the node already; otherwise say how it gets there ('images' of the host)"

    @property
    def pulls(self) -> bool:
        """Return whether the cluster pulls the users' images."""
        return self.images is not None and self.images.pull

    @property
    def place(self) -> ClusterNamespace:
        """Return the cluster and the namespace for kubectl."""
        return ClusterNamespace(self.context or "", self.namespace or "", self.kubeconfig or "")

    @property
    def description(self) -> str:
        """Words for the plan."""
        cluster = f"context {self.context}" if self.context else "kubectl's current context"
        namespace = f", namespace {self.namespace}" if self.namespace else ""
        node = f"node {self.node}" if self.node else f"a node with {self.selector}" if self.selector else "any node"
        pods = f", pods at level {self.pod_security}" if self.pod_security else ", privileged" * self.privileged
        services = f", {self.services:,} Services added" if self.services else ""
        return f"Kubernetes, {cluster}{namespace}, {node}{pods}{services}"


class Kubernetes(HostKind):
    """A node seen through one small pod of ours; pods are opened on it."""

    kind = "kubernetes"
    summary = "a node of a Kubernetes cluster, through your own kubectl; it runs only pods"
    options = KubernetesOptions
    group = ""
    programs: ClassVar = ("kubectl",)
    cleanup: ClassVar = (ClusterObjects(), LoadedImages(), NodeFolders())
    """The last goes first: a folder is removed by a pod of its run, and that has an image and a ConfigMap."""

    def ready(self, options: Any | None = None) -> Readiness:
        """Return whether the user has the rights that a run needs, and the API server would accept its pods.

        A kubeconfig that a study brings is not used before the user agrees, because it can start programs.
        """
        if options is None or options.kubeconfig is not None:
            return Readiness(True)
        from weighbridge.features.kubernetes import services, survey

        kubectl = options.place.kubectl()
        further = (*(() if options.node else survey.CHOOSE_NODES), *(survey.SERVICES if options.services else ()))
        try:
            pod_fields = {
                "host_network": options.pod_security is None,
                "privileged": options.privileged,
                "user": user_of(options.pod_security),
            }
            steps = [survey.rights(kubectl, further, {}), survey.admission(kubectl, **pod_fields)]
            if options.node:
                steps.append(survey.node(kubectl, options.node))
            if options.services:
                steps.append(services.readiness(kubectl, options.services))
        except Unavailable as error:
            reached = not isinstance(error, Unreached)
            return Readiness(False, str(error), "weighbridge doctor --cluster" if reached else survey.REACH)
        return next((step for step in steps if not step.ready), steps[0])

    def admits(self, options: Any, asked: Mapping[str, Sequence[Any]]) -> Mapping[str, Readiness]:
        """Ask the API server what it would refuse; a study's own kubeconfig is not used for that."""
        if options.kubeconfig is not None:
            return {}
        from weighbridge.features.kubernetes import survey

        with suppress(Unavailable):  # `ready` says so
            return survey.admissions(options.place.kubectl(), asked_objects(asked, user_of(options.pod_security)))
        return {}

    def makes_for_native(self, needs: Any) -> Sequence[Any]:
        """Return a privileged pod."""
        return (asked_pod(needs, host_network=True, privileged=True),)

    def facts_of_native(self, needs: Any) -> Mapping[str, str]:
        """Return the quality of service of its pod."""
        return {QUALITY_OF_SERVICE: quality_of_service(asked_pod(needs))}

    def describe_location(self, options: Any) -> str:
        """Return the cluster, by the kubeconfig, and the objects that a run creates in it."""
        about = options.place.kubectl().configuration()
        context = f"context {about.context}" if about.context else "the cluster that kubectl uses by default"
        known = ", ".join(filter(None, (about.server, f"user {about.user}" if about.user else "")))
        where = f"{context} ({known})" if known else context
        return (
            f"cluster: {where}, namespace {about.namespace}: a run creates a ConfigMap and pods there (and Services "
            "and NetworkPolicies if environments need them) and deletes them at its "
            f"end{'. Its pods can be privileged, with all rights of root on the node' * options.privileged}"
        )

    def survey(self, context: str = "", namespace: str = "") -> Mapping[str, Readiness]:
        """Return what this user can measure in the cluster of a context, and what refuses the rest."""
        from weighbridge.features.kubernetes import survey

        return survey.survey(ClusterNamespace(context, namespace, "").kubectl(), context)

    def weighed_on(
        self, context: str, namespace: str, images: str, *, separate_hosts: bool, ask: bool
    ) -> Sequence[Mapping[str, Any]]:
        """Return nodes that the cluster chooses, or one if only one is ready."""
        from weighbridge.features.kubernetes import survey

        place = ClusterNamespace(context, namespace, "")
        try:
            nodes = survey.usable_nodes(place.kubectl()) if ask else ()
        except Denied as error:
            raise Unavailable(
                f"{error}; or save the study (--save) and name a node in its hosts (node: NAME)"
            ) from error
        named = {key: value for key, value in (("context", context), ("namespace", namespace)) if value}
        ways = images_of(images or (usual_images(context or place.kubectl().current_context()) if ask else ""))
        if ask and not ways:
            raise Unavailable(
                "Weighbridge must know how images reach the nodes of this cluster: add --images with kind, "
                "minikube, k3d, containerd, REGISTRY/REPOSITORY (your engine pushes to it) or pull"
            )
        host = {"kind": self.kind, **named, **({"images": ways} if ways else {})}
        return [host] * (min(1 + separate_hosts, len(nodes)) if ask else 1 + separate_hosts)

    def holds(self, options: Any, userland: Userland, cache: Path) -> Mapping[str, bool | None]:
        """Return whether each possible node has the images, or nothing if every run loads them."""
        if options.kubeconfig is not None:
            return {}
        from weighbridge.features.kubernetes import survey
        from weighbridge.features.kubernetes.supply import names_on_nodes

        with suppress(Unavailable):  # `ready` says so
            if images := names_on_nodes(options.images, userland, cache):
                return survey.holding(options.place.kubectl(), options.node, options.selector, images)
        return {}

    def push(
        self, userlands: Callable[[], Userlands], repository: str, cache: Path, say: Callable[[str], None]
    ) -> Sequence[str]:
        """Push the images of userlands, and the image of the pod that observes a node. Raises Unavailable."""
        from weighbridge.features.kubernetes.supply import push_all

        return push_all(userlands, repository, cache, say)

    @contextmanager
    def open(self, name: str, options: Any, run: RunContext, peers: Sequence[HostOptions]) -> Iterator[Host]:
        """Start the pod that observes the node."""
        from weighbridge.features.kubernetes.cluster import Cluster
        from weighbridge.features.kubernetes.node import node_host

        run.say(f"starting a pod for host {name} ({options.description})")
        place = options.place.resolved()
        named = frozenset(peer.node for peer in peers if isinstance(peer, KubernetesOptions) and peer.node)
        services = max(each.services or 0 for each in (options, *_of_place(peers, options.place)))
        with node_host(name, Cluster.of(run, place), options, named, services) as host:
            yield host


def _of_place(peers: Sequence[HostOptions], place: ClusterNamespace) -> list[KubernetesOptions]:
    return [peer for peer in peers if isinstance(peer, KubernetesOptions) and peer.place == place]


PLUGIN = Kubernetes()
