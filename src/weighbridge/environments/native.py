"""Native: the userland's programs on the host itself, in a chroot, under the same limits as everything else."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.engines import client
from weighbridge.engines.docker import engine
from weighbridge.errors import Unavailable
from weighbridge.hosts.chroot import ChrootSite, chroot_site
from weighbridge.linux import user_namespaces
from weighbridge.linux.open_files import too_many_open_files
from weighbridge.linux.process import link_prefix, output
from weighbridge.model.by_hand import ByHand, ByHandRequest
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs, OpenFiles, misplaced
from weighbridge.model.host import HostTraits
from weighbridge.model.plugin import Readiness
from weighbridge.model.quantity import Share
from weighbridge.model.site import Site, SiteRequest

_ENGINE_RUNS = (
    "'engine: idle' needs a host without a running Docker engine",
    "stop the engine, or use testbed hosts",
)


class NativeOptions(EnvironmentOptions):
    """``cpu_share`` gives the site less of the study's CPU limit: a known cost, for calibration.

    ``engine: idle`` starts a Docker engine on the host for its trials only, with a network but without containers.
    On testbed hosts it gets separate hosts, because an engine leaves its packet filter behind. ``own_host`` alone
    gives such hosts without an engine: the control.
    """

    cpu_share: Annotated[
        Share | None,
        Field(gt=0, le=1, description="Share of the study's CPU limit that it gets (creates a known cost)"),
    ] = None
    open_files: OpenFiles = None
    engine: Annotated[Literal["idle"] | None, Field(description="Run an idle Docker engine next to it")] = None
    own_host: Annotated[bool, Field(description="Use separate testbed hosts that no other environment uses")] = False


class Native(Environment):
    """The baseline of most studies."""

    kind = "native"
    group = ""
    summary = (
        "the host itself: a chroot into the root filesystem, with limits set by control groups; optionally with an "
        "idle engine"
    )
    options = NativeOptions
    programs = ("unshare",)
    fixed_s = 0.03
    limited_by_host = True
    on_clusters = "privileged"
    mounts = frozenset({"folder"})
    storage = "directory"
    shares_root = True
    takes = frozenset({"shm_size"})
    enters = True

    def as_host(self, traits: HostTraits) -> NativeOptions | None:
        """Return options that change nothing of the host, or None if its sites cannot be there."""
        return None if misplaced(self, traits) else NativeOptions()

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether mount namespaces can be created, no engine disturbs an idle one, and files can be opened."""
        if os.geteuid() != 0 and (refusal := user_namespaces.refusal()) is not None:
            return Readiness(False, *refusal)
        if output(("unshare", *(() if os.geteuid() == 0 else ("--map-root-user",)), "--mount", "true")) is None:
            remedy = "run outside a container" if os.geteuid() == 0 else "run as root, outside a container"
            return Readiness(False, "this user cannot create mount namespaces", remedy)
        if options is None:
            return Readiness(True)
        state = client.readiness() if options.engine else Readiness(True)
        if not state.ready or needs is None or not any(host.this_machine for host in needs.holding.values()):
            return state
        if options.engine and _engine_answers():
            return Readiness(False, *_ENGINE_RUNS)
        return too_many_open_files(options.open_files) or state

    def check(self, options: Any, needs: Needs) -> list[str]:
        """Return why a share of the CPU limit cannot be given, or a host of its own."""
        without_limit = options.cpu_share is not None and needs.resources.cpus is None
        managed = (options.engine or options.own_host) and any(each.managed for each in needs.holding.values())
        return [
            *["cpu_share needs a CPU limit: set one (resources: cpus)"] * without_limit,
            *["another program manages these hosts, and a run does not change them: remove 'engine' and 'own_host'"]
            * bool(managed),
        ]

    def confinement(self, options: Any) -> Mapping[str, str]:
        """Return nothing, because it has the confinement of the user who measures."""
        return {}

    def route_to_supporting_services(self, options: Any) -> str:
        """Return the route to the supporting services: through the host's own address on their bridge."""
        return "" if options.engine or options.own_host else "host to bridge"

    def by_hand(self, options: Any, request: ByHandRequest) -> ByHand:
        if options.engine:
            return ByHand("Weighbridge starts and stops an engine for each trial")
        if options.own_host:
            return ByHand("it is a control for hosts that Weighbridge creates")
        if options.open_files is not None:
            return ByHand("Weighbridge sets the limit of open files of native programs")
        if options.cpu_share is not None:
            return ByHand("Weighbridge sets the CPU limit of native programs")
        return ByHand()

    def purpose(self, options: Any, role: str) -> str:
        return "engine" if options.engine else "own" if options.own_host else ""

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """Open a chroot with its own control group, or what the host has instead."""
        if options.cpu_share is not None and request.limits.cpus is not None:
            limits = replace(request.limits, cpus=request.limits.cpus * options.cpu_share)
            request = replace(request, limits=limits)
        if purpose := self.purpose(options, request.role):
            request = replace(request, host=request.host.dedicated_host(purpose))
        request = replace(request, open_files=options.open_files)
        if (native_site := request.host.capabilities.native_site) is not None:
            with native_site(request) as site:
                yield site
            return
        with chroot_site(request) as site:
            yield SiteWithIdleEngine(site, IdleEngine.of(request)) if options.engine else site


def _engine_answers() -> bool:
    if (docker_client := client.client_from_environment()) is None:
        return False
    docker_client.close()
    return True


class IdleEngine:
    """An engine with a network and without containers, up while a site of its host is thawed."""

    def __init__(self, request: SiteRequest) -> None:
        self._run, self._host = request.run, request.host
        self._users = 0
        self._stack = ExitStack()

    @classmethod
    def of(cls, request: SiteRequest) -> "IdleEngine":
        """Return the idle engine of the request's host, which that host's sites share."""
        if request.host.this_machine and _engine_answers():
            raise Unavailable(": ".join(_ENGINE_RUNS))
        return request.run.share(f"idle engine {request.host.name}", lambda: cls._open_engine(request))

    @classmethod
    @contextmanager
    def _open_engine(cls, request: SiteRequest) -> Iterator["IdleEngine"]:
        idle = cls(request)
        try:
            yield idle
        finally:
            idle._stack.close()

    def up(self) -> None:
        """Start the engine, for the first user."""
        self._users += 1
        if self._users > 1:
            return
        docker_engine = self._stack.enter_context(engine(self._run, self._host))
        if not docker_engine.private:  # it runs while the other environments are measured, too
            raise Unavailable(
                f"'engine: idle' needs a host without a running Docker engine: stop the engine on {self._host.name}"
            )
        network = docker_engine.client.networks.create(
            f"weighbridge-{self._run.id}-idle",
            labels=docker_engine.labels,
            options={"com.docker.network.bridge.name": f"{link_prefix(self._run.id)}900"},
        )
        self._stack.callback(network.remove)

    def down(self) -> None:
        """Stop the engine, after the last user."""
        self._users -= 1
        if not self._users:
            self._stack.close()


class SiteWithIdleEngine:
    """A native site whose host has a running engine while it is thawed. Everything else is the site's."""

    def __init__(self, site: ChrootSite, idle: IdleEngine) -> None:
        self._site = site
        self._idle = idle
        self._thawed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._site, name)

    def thaw(self) -> None:
        """Start the engine, unless the host's other site has, and let the processes run."""
        if not self._thawed:
            self._idle.up()
        self._thawed = True
        self._site.thaw()

    def freeze(self) -> None:
        """Stop the processes, then the engine."""
        self._site.freeze()
        if self._thawed:
            self._idle.down()
        self._thawed = False


PLUGIN = Native()
