"""Pods of a Kubernetes cluster, on nodes that a study names as hosts."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.environments.pod.manifest import given_otherwise, not_honoured, pod_request, with_storage
from weighbridge.environments.pod.site import PodSite
from weighbridge.errors import Unavailable
from weighbridge.linux.process import most_open_files
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.facts import CONFINEMENT
from weighbridge.model.host import HostTraits
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import MountRequest, Site, SiteRequest

_CLASS = r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$"


class PodOptions(EnvironmentOptions):
    """``network: host`` is the node's own network: the baseline of what the pods' network costs."""

    network: Annotated[
        Literal["pod", "host"], Field(description="The cluster's network for pods, or the node's own")
    ] = "pod"
    runtime_class: Annotated[
        str, Field(pattern=_CLASS, description="A RuntimeClass; default: the cluster's")
    ] = ""  # fmt: skip


class Pod(Environment):
    """One pod for each site, whose first process is our launcher."""

    kind = "pod"
    summary = "a pod of a Kubernetes cluster, with the pods' network or the node's own"
    options = PodOptions
    group = ""
    fixed_s = (0.1, 1.0)
    takes = frozenset({"shm_size", "sysctls"})
    mounts = frozenset({"pod volume", "layer"})
    storage = "empty-dir"
    shares_storage = False

    def as_host(self, traits: HostTraits) -> Any | None:
        """Return the node's own network: on nodes a pod with it is as close to the host as there is."""
        return PodOptions(network="host") if traits.managed else None

    def unplaceable(self, traits: HostTraits) -> str:
        """Why it cannot be on such a host; "": it can."""
        return "" if traits.managed else "pods are on nodes of a cluster alone: use hosts of kind kubernetes"

    def readiness(self, options: Any | None = None) -> Readiness:
        """Ready: what a cluster lacks is known to its hosts."""
        return Readiness(True)

    def problems(self, options: Any, *, needs: Needs) -> list[str]:
        """Return why sysctls cannot be set: those of the network are the node's; and why it can have no such disk."""
        if options.storage is not None and options.storage.engine_disk is not None:
            return ["a pod's layer is on its node's disk: remove 'disk'"]
        of_network = sorted(name for name in needs.sysctls if name.startswith("net."))
        if options.network == "host" and of_network:
            return [f"{of_network[0]} is the node's with 'network: host': remove it, or use 'network: pod'"]
        return []

    def confinement(self, options: Any) -> Mapping[str, str]:
        """Return all: the cluster's runtime decides."""
        return dict.fromkeys(CONFINEMENT, "")

    def weighed_in(self) -> Mapping[str, Mapping[str, Any]]:
        """Return none: ``weigh`` measures on this machine."""
        return {}

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """A pod on the host's node, with our launcher as its first process."""
        pods = request.host.capabilities.pods
        if pods is None:
            raise Unavailable(f"host {request.host.name} has no pods: use a host of kind kubernetes")
        asked = pod_request(
            request,
            pods.node_name,
            pods.image(request.userland),
            pods.owner,
            host_network=options.network == "host",
            runtime_class=options.runtime_class,
            open_files=most_open_files(),
            pull=pods.pulls,
        )
        with ExitStack() as stack:
            if request.storage is not None:
                mount = stack.enter_context(
                    request.storage.open(MountRequest(request.run, request.host, request.name))
                )
                asked = with_storage(asked, mount)
            running = stack.enter_context(pods.open_pod(asked))
            refused = {**not_honoured(request.limits), **given_otherwise(request.limits, running.about)}
            site = PodSite(request, running, asked, refused)
            if asked.data is not None:
                site.open_data()
            try:
                yield site
            finally:  # stopped, its programs would not hear that they are to end
                site.thaw()


PLUGIN = Pod()
