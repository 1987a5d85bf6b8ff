"""The environment `pod`: programs run in pods of a Kubernetes cluster, on nodes that a study names as hosts."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes.environments.pod.contradictions import problems
from weighbridge.features.kubernetes.environments.pod.policy import enforced
from weighbridge.features.kubernetes.environments.pod.policy import policy as network_policy
from weighbridge.features.kubernetes.environments.pod.reach import Reach, opened_way, service
from weighbridge.features.kubernetes.manifest import Quality, asked_pod, pod_request, quality_of_service
from weighbridge.features.kubernetes.pods import Pods
from weighbridge.features.kubernetes.site import PodSite, pod_site
from weighbridge.model.command import PublishedPort
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.facts import CONFINEMENT, QUALITY_OF_SERVICE
from weighbridge.model.host import HostTraits
from weighbridge.model.plugin import Durability
from weighbridge.model.site import Site, SiteRequest

_ASKED_PORT = 5201
_CLASS = r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$"


class PodOptions(EnvironmentOptions):
    """``network: host`` is the node's own network: the baseline for the cost of the pod network.

    Clients reach a server's pod at its own address, or with ``reach`` by a Service of the run's: at its cluster
    address, or at a port of the server's node. ``policy: allow`` is a NetworkPolicy that lets the client's pod reach
    the server's, and no other pod.
    """

    network: Annotated[
        Literal["pod", "host"], Field(description="The cluster's pod network, or the network of the node")
    ] = "pod"
    reach: Annotated[
        Reach,
        Field(
            description="How clients reach the server: at the address of its pod, or through a Service that the "
            "run creates"
        ),
    ] = "pod"
    policy: Annotated[
        Literal["allow"] | None, Field(description="Allow only the client to reach the server, with a NetworkPolicy")
    ] = None
    runtime_class: Annotated[
        str, Field(pattern=_CLASS, description="RuntimeClass; default: the cluster's default")
    ] = ""  # fmt: skip

    quality: Annotated[
        Quality,
        Field(
            description="Requests of the pods: small (burstable), or equal to the limits, which must then be "
            "available for "
            "all pods of a run at once (guaranteed)"
        ),
    ] = "burstable"


class Pod(Environment):
    """One pod for each site, whose first process is our launcher."""

    kind = "pod"
    summary = "a pod of a Kubernetes cluster, on the pod network or on the network of its node"
    options = PodOptions
    group = ""
    on_clusters = "only"
    enters = True
    fixed_s = 0.5
    opening_s = 3.0
    takes = frozenset({"shm_size", "sysctls"})
    mounts = frozenset({"pod volume", "layer"})
    storage = "empty-dir"
    shares_storage = False

    def as_host(self, traits: HostTraits) -> Any | None:
        """Return the options of the node's own network, the closest to the host if ``native`` cannot be there."""
        is_host = traits.managed and traits.without_native and not traits.without_network
        return PodOptions(network="host") if is_host else None

    def layer_durability(self, options: PodOptions) -> Durability:
        """Return "unknown" for another runtime, which can keep the layer in a file that no sync reaches (gVisor)."""
        return "unknown" if options.runtime_class else "synchronous"

    def check(self, options: Any, needs: Needs) -> list[str]:
        """Return a sentence for each combination that cannot work."""
        return [*problems(options, needs)]

    def foreseen_facts(self, options: Any, *, needs: Needs) -> Mapping[str, str]:
        """Return the quality of service of its pods."""
        return {QUALITY_OF_SERVICE: quality_of_service(asked_pod(needs, options.quality))}

    def makes(self, options: Any, *, needs: Needs) -> Sequence[Any]:
        """Return the pod, and the Service and the NetworkPolicy of its server."""
        data = options.storage.manifest if options.storage is not None else {}
        pod = asked_pod(
            needs,
            options.quality,
            host_network=options.network == "host",
            runtime_class=options.runtime_class,
            data=data or None,
        )
        assert pod.owner is not None
        port = (PublishedPort("tcp", _ASKED_PORT, _ASKED_PORT),)
        leads = [service(pod.run_id, pod.site, pod.owner, options.reach, port)] if options.reach != "pod" else []
        guards = [network_policy(pod.run_id, pod.site, pod.owner, "deny")] if options.policy is not None else []
        return (pod, *leads, *guards)

    def confinement(self, options: Any) -> Mapping[str, str]:
        """Return all facts, because the cluster's runtime decides them."""
        return dict.fromkeys(CONFINEMENT, "")

    def weighed_in(self) -> Mapping[str, Mapping[str, Any]]:
        """Return its networks: the node's own, and each way to a pod."""
        return {
            "host": {"network": "host"},
            "pod": {},
            "service": {"reach": "service"},
            "nodeport": {"reach": "nodeport"},
            "policy": {"policy": "allow"},
        }

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """Start a pod on the host's node, with the launcher as its first process."""
        pods: Pods | None = request.host.capabilities.pods
        if pods is None:
            raise Unavailable(f"host {request.host.name} cannot run pods: use a host of kind kubernetes")
        asked = pod_request(
            request,
            pods,
            host_network=options.network == "host",
            runtime_class=options.runtime_class,
            quality=options.quality,
        )
        with ExitStack() as stack:
            site = stack.enter_context(pod_site(request, pods, asked))
            if request.role == "server" and request.ports and options.reach != "pod":
                site.reach_by(
                    stack.enter_context(opened_way(pods, request.run.id, request.name, options.reach, request.ports))
                )
            if options.policy is not None and not request.joined_site:
                _admit(stack, site, request)
            yield site


def _admit(stack: ExitStack, site: PodSite, request: SiteRequest) -> None:
    """Apply a policy to a server's pod as soon as its client's pod exists."""
    none: dict[str, tuple[PodSite, SiteRequest]] = {}
    servers = request.run.share("servers with a policy", lambda: nullcontext(none))
    if request.role == "server":
        servers[request.environment] = (site, request)
    elif request.role == "client" and request.environment in servers:
        server, asked = servers[request.environment]
        pods, own = asked.host.capabilities.pods, request.host.capabilities.pods
        if pods is not None and own is not None and asked.ports:
            request.run.say(f"checking whether the cluster enforces NetworkPolicies ({request.environment})")
            namespace = own.namespace if own.namespace != pods.namespace else ""
            stack.enter_context(enforced(pods, request.run.id, server, site, asked.ports, namespace))
            server.admitted = site.name


PLUGIN = Pod()
