"""The environment `docker`: programs run in a Docker container, on any Docker network."""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.engines import confined, gvisor, networks, runtimes, shared_root
from weighbridge.engines.client import UsersEngineContents, answers, engine_errors, quietly, readiness
from weighbridge.engines.confined import ConfinedOptions
from weighbridge.engines.container import (
    Attached,
    DockerSite,
    must_be_there,
    process_options,
    runs_for_user,
    why_lost,
)
from weighbridge.engines.docker import LAUNCHER, Engine, engine_of
from weighbridge.engines.host_network import HostNetworkOptions, network_facts, prepared, without_offloads
from weighbridge.engines.memory_layer import layered_folder
from weighbridge.engines.networks import ContainerAttachment, lacking, network_name, not_looked
from weighbridge.engines.private import BESIDE_ANOTHER, EngineTraces, program_readiness
from weighbridge.engines.runtimes import DEFAULT, GVISOR, RuntimeName
from weighbridge.engines.settings import Settings
from weighbridge.engines.swarm import FormedSwarm, Swarm
from weighbridge.environments.docker.compose import by_hand
from weighbridge.environments.docker.contradictions import ON_PARENT, problems
from weighbridge.errors import Unavailable
from weighbridge.launcher.launch import Launcher
from weighbridge.linux import selinux
from weighbridge.linux.links import interfaces
from weighbridge.linux.open_files import too_many_open_files
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import environment_of
from weighbridge.linux.slices import RunSlices
from weighbridge.model.by_hand import ByHand, ByHandRequest
from weighbridge.model.environment import Environment, Needs, OpenFiles, Variables
from weighbridge.model.host import Host
from weighbridge.model.openings import OpeningPhases
from weighbridge.model.options import ABSOLUTE, External
from weighbridge.model.plugin import Durability, Readiness
from weighbridge.model.site import DATA, Mount, MountRequest, Site, SiteRequest
from weighbridge.model.userland import Userland

_OTHER_KERNEL = "use a kernel that has it, or hosts with their own kernel: 'hosts: {a: {kind: guest}}'"
_PURPOSES = {"none": "docker", "host": "docker", "bridge": "nat", "overlay": "swarm"}


def _purpose(options: Any) -> str:
    """Return the purpose of a disposable host; an encrypted overlay's rules would slow the packets of a plain one."""
    return _PURPOSES[options.network] + ("-encrypted" if options.encrypted else "")


def host_for(options: Any, request: SiteRequest) -> tuple[Host, Settings]:
    """Return the host to open on, and the engine's settings; a host of its own where network or settings change it.

    On a disposable host that is always so: translation of addresses for one environment costs each connection of its
    host.
    """
    purpose = purpose_of(options, request.role, disposable=request.host.capabilities.disposable is not None)
    host = request.host.dedicated_host(purpose) if purpose else request.host
    return host, _settings(options, request.role)


def _settings(options: Any, role: str) -> Settings:
    disk = options.storage.engine_disk if options.storage else None
    by_proxy = options.publish_by == "proxy" and role == "server"
    return Settings(options.userland_proxy, not by_proxy, disk, options.dockerd)


def purpose_of(options: Any, role: str, *, disposable: bool) -> str:
    """Return the purpose of the host of its sites; "" if they change nothing on a host."""
    changes = [options.network] if options.network in ON_PARENT else ["bridged"] if options.attach else []
    if not changes and disposable:
        changes = [_purpose(options)]
    return "-".join(part for part in (*changes, _settings(options, role).purpose, options.host_network) if part)


def route_to_supporting_services(options: Any) -> str:
    """Return how a container gets to the supporting services of a study; "" if its network does not lead there."""
    if options.network == "host":
        return "host to bridge"
    return "on the same bridge" if options.network == "bridge" and not options.attach else ""


def sandbox_of(options: Any) -> gvisor.GvisorSandbox:
    """Return how runsc is to serve a container; on the host's network it must leave that network alone."""
    stack: gvisor.Stack = "host" if options.network == "host" else options.runsc_network
    return gvisor.GvisorSandbox(options.runsc_platform, stack, options.runsc_files, options.runsc_layer)


def _runtime_name(options: Any, engine: Engine) -> str | None:
    """Return the engine's name of the runtime, or None for its default. Raises Unavailable if it does not have it."""
    if options.runtime == DEFAULT:
        return None
    if options.runtime == GVISOR:
        return gvisor.runtime(engine.client, engine.host, sandbox_of(options))
    return _chosen(options, engine).entry.name


def _chosen(options: Any, engine: Engine) -> runtimes.ChosenRuntime:
    """Return the engine's runtime that the options name, asked once. Raises Unavailable."""

    def choose() -> runtimes.ChosenRuntime:
        path = engine.settings.program[:-1]
        return runtimes.chosen(engine.client, engine.host, options.runtime, private=engine.private, environment=path)

    return engine.runtimes.get(options.runtime, choose)


def _runtime_facts(options: Any, engine: Engine, container: Any) -> dict[str, str]:
    """Return the facts of the runtime that made the first container of an engine with these options.

    Raises Unavailable if it is another runtime than the study's.
    """

    def read_back() -> dict[str, str]:
        reported = str(container.attrs["HostConfig"].get("Runtime") or "")
        supervisor = runtimes.supervisor_of(engine.host.read, int(container.attrs["State"]["Pid"]))
        if options.runtime == DEFAULT:
            return runtimes.facts_of(reported, supervisor)
        return runtimes.verified_facts(_chosen(options, engine), reported, supervisor)

    return engine.runtimes.get(("facts", options.runtime), read_back)


def notes_of(options: Any, request: SiteRequest, engine: Engine, container: Any) -> dict[str, str]:
    """Return facts of a container in addition to the engine's own, by subject."""
    pid = int(container.attrs["State"]["Pid"])
    notes: dict[str, str] = {"network": options.network}
    if request.userland.of_this_machine:
        notes["root"] = "this machine's own root folder, mounted into the container"
    if engine.layered:
        notes["image"] = "its lower layer is the root filesystem of the host's native sites"
    notes |= (
        gvisor.facts(engine.client, engine.host, sandbox_of(options), pid)
        if options.runtime == GVISOR
        else _runtime_facts(options, engine, container)
    )
    proxied = options.publish_on == "loopback" and options.userland_proxy
    if options.publish and (options.publish_by == "proxy" or proxied):
        notes["not honoured: limits of docker-proxy"] = (
            "it carries the traffic of this environment and is not limited"
        )
    if request.storage is not None:
        notes["storage"] = f"{DATA} on {request.storage.kind}"
    disposable = engine.host.capabilities.disposable
    if disposable is not None and options.network != "none":
        own, overlay = options.network != "host", options.network == "overlay"
        notes |= network_facts(disposable, pid, own_network=own, overlay=overlay)
    return notes


Address = Annotated[str, Field(pattern=r"^\d{1,3}(\.\d{1,3}){3}$", examples=["10.0.0.101"])]
Subnet = Annotated[str, Field(pattern=r"^\d{1,3}(\.\d{1,3}){3}/\d{1,2}$", examples=["10.0.0.0/24"])]
_Program = Annotated[
    str, Field(pattern=r"^[^\x00-\x1f:]{1,1000}$", examples=["/opt/docker-29/bin/dockerd"]), ABSOLUTE
]


def _with_gvisor(engine: Readiness, wanted: gvisor.GvisorSandbox) -> Readiness:
    """Return whether gVisor can be used: by the engine that answers, or only by engines of testbed hosts."""
    sandbox = gvisor.readiness()
    if sandbox.ready and (refusal := gvisor.refusal(wanted)) is not None:
        return replace(engine, caveat="testbed hosts only", detail=refusal.detail)
    return engine if sandbox.ready else sandbox


def _with_runtime(engine: Readiness, wanted: str) -> Readiness:
    """Return whether a runtime can be used: by the engine that answers, or only by engines that a run starts."""
    if (refusal := runtimes.lacking_hardware(wanted)) is not None:
        return refusal
    running, to_start = runtimes.of_running_engine(wanted), runtimes.of_engine_to_start(wanted)
    if running is None:
        return engine if to_start.ready else to_start
    if running.ready:
        return engine
    return replace(engine, caveat="testbed hosts only", detail=running.detail) if to_start.ready else running


def _lacking_runtime(options: Any) -> Readiness | None:
    """Return why the engine of this machine cannot have the runtime, or None."""
    if options.runtime == DEFAULT:
        return None
    if options.runtime == GVISOR:
        return gvisor.refusal(sandbox_of(options))
    state = runtimes.of_running_engine(options.runtime) or runtimes.of_engine_to_start(options.runtime)
    return None if state.ready else state


def unmet(options: Any, needs: Needs) -> Readiness | None:
    """Return what a study needs and this machine does not have: an interface, a runtime, no other engine."""
    if not any(host.this_machine for host in needs.holding.values()):
        return None
    if options.dockerd is not None and answers():
        return BESIDE_ANOTHER
    if needs.entered and shutil.which("docker") is None:
        return Readiness(False, "'exec' needs the command docker, which is not installed", install_here(["docker"]))
    refusal = too_many_open_files(options.open_files)
    if refusal is None and needs.of_this_machine:
        refusal = shared_root.refusal()
    if refusal is None:
        refusal = _lacking_runtime(options)
    if refusal is not None or not options.parent or options.parent in (links := interfaces()):
        return refusal
    why = f"parent: this machine has no network interface '{options.parent}'"
    return Readiness(False, why, f"choose from {', '.join(links)}")


class DockerOptions(HostNetworkOptions, ConfinedOptions):
    """The network of containers, how clients reach the server, and other settings that can have a cost.

    ``bridge`` is a bridge network made for the run; with ``attach: interface`` the host's interface is a port of it,
    and one subnet spans all hosts. ``publish`` has clients use a published port instead of the container's own
    address: from another host on the host's address, on the same host on the bridge's own (``gateway``: the path of
    netfilter's address translation, which clients on other machines take too) or on ``loopback`` (through
    docker-proxy). ``publish_by: proxy`` makes docker-proxy the path from anywhere (an engine without iptables).

    ``macvlan`` and ``ipvlan`` need a ``parent`` interface (testbed and ssh hosts have one), and between machines that
    are no testbed a ``subnet`` and each role's ``addresses``. ``overlay`` forms a swarm for the run.
    """

    network: Annotated[
        Literal["none", "host", "bridge", "macvlan", "ipvlan", "overlay"],
        Field(description="The container's network; the table above shows which clients can reach it"),
    ] = "bridge"
    attach: Annotated[Literal["interface"] | None, Field(description="Add the host's interface to the bridge")] = None
    parent: Annotated[
        str | None, Field(pattern=r"^[A-Za-z0-9_.-]{1,15}$", description="Host interface to use"), External.NETWORK
    ] = None
    subnet: Annotated[
        Subnet | None,
        Field(description="Subnet of macvlan, ipvlan or overlay; on ssh hosts the subnet of the parent interface"),
        External.NETWORK,
    ] = None
    gateway: Annotated[Address | None, Field(description="Gateway in that subnet, for macvlan and ipvlan")] = None
    addresses: Annotated[
        dict[Literal["server", "client"], Address], Field(description="Address of each role inside, in that subnet")
    ] = Field(default_factory=dict)
    ipvlan_mode: Annotated[
        Literal["l2", "l3"],
        Field(
            description="Mode of ipvlan; l3 needs routes between hosts, so it works only on one host with both "
            "roles inside"
        ),
    ] = "l2"
    encrypted: Annotated[bool, Field(description="Encrypt the overlay network (IPsec)")] = False
    publish: Annotated[
        bool, Field(description="Let clients use a published port instead of the container's address")
    ] = False
    publish_on: Annotated[
        Literal["gateway", "loopback"],
        Field(
            description="How a client on the same host reaches the port: gateway uses address translation, "
            "loopback uses "
            "docker-proxy"
        ),
    ] = "gateway"
    publish_by: Annotated[
        Literal["nat", "proxy"], Field(description="What forwards connections to a published port")
    ] = "nat"
    userland_proxy: Annotated[
        bool, Field(description="Whether the engine starts a docker-proxy for each published port")
    ] = True
    dockerd: Annotated[
        _Program | None,
        Field(description="Path of the engine's program; default: the dockerd in PATH"),
        External.PROGRAM,
    ] = None
    open_files: OpenFiles = None
    variables: Variables = Field(default_factory=dict)
    runtime: Annotated[
        RuntimeName,
        Field(
            description="OCI runtime: a name that the engine knows, or the absolute path of a program. An engine "
            "that the run starts knows crun, youki, krun and sysbox-runc if they are installed. runsc is gVisor, a "
            "kernel in user space"
        ),
    ] = DEFAULT
    runsc_platform: Annotated[
        gvisor.Platform | None, Field(description="How gVisor intercepts system calls; default: the engine's setting")
    ] = None
    runsc_network: Annotated[
        gvisor.Stack, Field(description="Network stack of gVisor: its own, or the stack of the host's kernel")
    ] = "own"
    runsc_files: Annotated[
        gvisor.Files, Field(description="How gVisor opens files; gofer: a separate process opens each file")
    ] = "direct"
    runsc_layer: Annotated[
        gvisor.LayerOf,
        Field(description="Where the writable layer is: in gVisor, which never syncs it, or in the engine"),
    ] = "own"


class Docker(Environment):
    """Containers of the Docker engine that answers, or of one of our own."""

    kind = "docker"
    summary = "a Docker container with network none, host, bridge, macvlan, ipvlan or overlay; published ports"
    cleanup: ClassVar = (EngineTraces(), RunSlices(), FormedSwarm(), UsersEngineContents())
    options = DockerOptions
    mounts = frozenset({"folder", "volume", "layer"})
    storage = "volume"
    shares_root = True
    takes = frozenset({"shm_size", "sysctls"})
    enters = True
    builds_images = True
    opening_s = 0.8
    engine_s = 5.0

    def purpose(self, options: Any, role: str) -> str:
        return purpose_of(options, role, disposable=True)

    def layer_durability(self, options: DockerOptions) -> Durability:
        """Return "none" if gVisor keeps the layer in its own file, which no sync reaches (--overlay2=root:self).

        How a runtime with virtual machines shares the layer with them is unknown.
        """
        if runtimes.is_virtual(options.runtime):
            return "unknown"
        return "none" if options.runtime == GVISOR and options.runsc_layer == "own" else "synchronous"

    def unverified(self, options: Any | None = None) -> str:
        """Return that containers in virtual machines were never started, because that needs KVM."""
        return "" if options is None else runtimes.unverified(options.runtime)

    def opens_in_order(self, options: Any) -> str:
        """Return a name for overlay networks, because the first engine of the swarm manages it."""
        return "swarm" if options.network == "overlay" else ""

    def check(self, options: Any, needs: Needs) -> list[str]:
        return list(problems(options, needs))

    def weighed_in(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the variants that ``weigh`` compares: one for each network and runtime. ``docker`` is a bridge."""
        networks = {name: {"network": name} for name in ("host", "none", "bridge")}
        published = {"network": "bridge", "publish": True}
        names = {"crun": "crun", "youki": "youki", "gvisor": GVISOR}
        by_runtime = {name: {"network": "bridge", "runtime": runtime} for name, runtime in names.items()}
        return {"docker": networks["bridge"], **networks, "published": published, **by_runtime}

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether an engine answers or can be started, and has what the options and the study need."""
        own = None if options is None else options.dockerd
        ready = readiness() if own is None else program_readiness(own)
        if not ready.ready:
            return ready
        if options is None:
            refusal = shared_root.refusal()
            if names := runtimes.known_here():
                ready = replace(ready, detail=f"{ready.detail}; runtimes: {names}")
            return ready if refusal is None else replace(ready, caveat="images only", detail=refusal.detail)
        if options.runtime == GVISOR:
            ready = _with_gvisor(ready, sandbox_of(options))
        elif options.runtime != DEFAULT:
            ready = _with_runtime(ready, options.runtime)
        if not ready.ready:
            return ready
        kernel_networks = [options.network] if options.network in ("macvlan", "ipvlan", "overlay") else []
        features = [*kernel_networks, *(["encrypted"] if options.encrypted else [])]
        lacks = next((Readiness(False, why, _OTHER_KERNEL) for each in features if (why := lacking(each))), None)
        if lacks is None and needs is not None:
            lacks = unmet(options, needs)
        if lacks is not None:
            return lacks
        if features and (why_not := not_looked()) is not None:
            return Readiness(True, *why_not, caveat="whether the kernel supports it is unknown")
        return ready

    def route_to_supporting_services(self, options: Any) -> str:
        """Return the route to the supporting services: a second interface on their bridge, or the host's network."""
        return route_to_supporting_services(options)

    def confinement(self, options: Any) -> Mapping[str, str]:
        """Return a container's own: a filter, too, unless it is unconfined. Some runtimes give it its own kernel."""
        if runtimes.has_own_kernel(options.runtime):
            return super().confinement(options)
        return confined.confinement(options)

    def variants(self) -> Mapping[str, Any]:
        """Return options by name, for networks that some kernels do not support."""
        return {
            "docker macvlan": DockerOptions(network="macvlan"),
            "docker ipvlan": DockerOptions(network="ipvlan"),
            "docker overlay": DockerOptions(network="overlay"),
            "docker overlay, encrypted": DockerOptions(network="overlay", encrypted=True),
            "docker runtime: runsc (gVisor)": DockerOptions(runtime="runsc"),
        }

    def ready_on(self, options: Any, host: Host) -> Readiness:
        """Return whether the host's own engine can be used, if it has one; else a run starts its own."""
        try:
            if (own := host.capabilities.engine) is not None:
                own.engine_url()
        except Unavailable as why:
            return Readiness(False, str(why))
        return Readiness(True)

    def by_hand(self, options: Any, request: ByHandRequest) -> ByHand:
        return by_hand(options, request)

    def make_images(self, options: Any, request: SiteRequest, sizes: Collection[int]) -> None:
        host, settings = host_for(options, request)
        engine = engine_of(request.run, host, settings)
        with engine_errors(f"making an image for {request.title}"):
            for size in sizes:
                engine.image(request.userland, size)

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        host, settings = host_for(options, request)
        engine = engine_of(request.run, host, settings)
        if options.host_network and (disposable := host.capabilities.disposable) is not None:
            prepared(request.run, disposable, options)
        with ExitStack() as stack:
            attachment, phases = _attach(stack, options, request, engine), OpeningPhases()
            with engine_errors(f"opening {request.title}"):
                container = _container(stack, engine, options, request, attachment)
                if request.supporting_services is not None and options.network != "host":
                    engine.client.networks.get(request.supporting_services.network).connect(container)
                phases.end("create")
                attached = _start(engine, container, options, attachment)
                phases.end("start")
                addresses = _addresses(container, options, request, engine, attachment)
            if options.runtime not in (DEFAULT, GVISOR):
                _runtime_facts(options, engine, container)  # it must be the study's
            notes = partial(notes_of, options, request, engine, container)
            why, variables = why_lost(engine, container, attached), environment_of(request.run.id)
            launcher = stack.enter_context(Launcher(attached, request.title, why, variables))
            phases.end("answer")
            launcher.reports_use = options.runtime != GVISOR
            site = DockerSite(request, engine, container, addresses, notes, launcher)
            site.opening_phases = phases.seconds
            site.reached = request.reached if options.publish else {}
            site.layers = (*site.layers, *runtimes.layers(options.runtime))
            if options.runtime == GVISOR and sandbox_of(options).stack == "host":
                site.listening = gvisor.listening_outside(engine.host, site.pid)
            yield site


def _attach(stack: ExitStack, options: DockerOptions, request: SiteRequest, engine: Engine) -> ContainerAttachment:
    run, host = request.run, engine.host
    if options.network in ("none", "host"):
        return ContainerAttachment(options.network)
    if options.network == "overlay":
        swarm = run.share("swarm", lambda: Swarm.formed(run))
        swarm.join(engine)
        name = swarm.network(request.environment, encrypted=options.encrypted, subnet=options.subnet, mtu=options.mtu)
        return ContainerAttachment(name, start=partial(swarm.start, engine, name))
    parent = options.parent or host.interface
    fixed = options.addresses.get("client" if request.role == "client" else "server")
    disposable = host.capabilities.disposable
    if disposable is not None and options.subnet is None:
        fixed = disposable.next_address()
    if options.network in ON_PARENT:
        driver: networks.Driver = "macvlan" if options.network == "macvlan" else "ipvlan"
        mode = "bridge" if driver == "macvlan" else options.ipvlan_mode
        network = run.share(
            f"{driver} {mode} {host.name} {parent} {options.subnet} {options.gateway}",
            lambda: networks.on_parent(engine, run, driver, parent, options.subnet, options.gateway, mode),
        )
        return ContainerAttachment(network.name, fixed, network)
    if options.attach:
        network = run.share(f"bridged {host.name}", lambda: networks.attached_bridge(engine, run, parent))
        return ContainerAttachment(network.name, fixed, network)
    if options.publish:
        if request.joined_site:
            name = network_name(run, request.joined_site)
            return ContainerAttachment(name, ports=_ports(options, request, host, None))
        network = stack.enter_context(networks.bridge(engine, run, request.name, options.mtu))
    else:  # both roles are on one bridge: Docker lets nothing pass between two
        key = f"bridge {host.name} {request.environment}"
        network = run.share(key, lambda: networks.bridge(engine, run, request.name, options.mtu))
    return ContainerAttachment(network.name, None, network, _ports(options, request, host, network))


def _ports(options: DockerOptions, request: SiteRequest, host: Host, network: Any) -> dict[str, tuple[str, int]]:
    on = _published_on(options, request, host, network)
    ports = request.ports if options.publish or request.joined_site else ()
    return {f"{port.listens}/{port.transport}": (on, port.reached) for port in ports}


def _published_on(options: DockerOptions, request: SiteRequest, host: Host, network: Any) -> str:
    if request.joined_site:  # nothing uses its ports, so no other machine needs to reach them
        return "127.0.0.1"
    if request.separate_hosts:
        return host.address
    return networks.gateway(network) if options.publish_on == "gateway" else "127.0.0.1"


def _container(
    stack: ExitStack, engine: Engine, options: DockerOptions, request: SiteRequest, attachment: ContainerAttachment
) -> Any:
    limits = request.limits
    mount = stack.enter_context(_storage(engine, request)) if request.storage is not None else None
    volumes = {mount.source: {"bind": DATA, "mode": "rw"}} if mount is not None and mount.source else {}
    if request.userland.layered:
        folder = stack.enter_context(layered_folder(engine, request.run, request.name, request.userland))
        volumes[folder] = {"bind": request.userland.layered, "mode": "rw"}
    own_data = {DATA} if mount is not None else set()  # the data of a layer has no volume
    others = own_data | {each["bind"] for each in volumes.values()}
    # gVisor binds in a user namespace, and has what is mounted read-only in its own kernel
    sandboxed = options.runtime == GVISOR
    mounts = shared_root.binds(request.userland, others, recursive=sandboxed)
    container = engine.client.containers.create(
        engine.image(request.userland, request.image_files),
        [],
        entrypoint=[LAUNCHER],
        stdin_open=True,
        log_config={"type": "none"},
        runtime=_runtime_name(options, engine),
        healthcheck={"test": ["NONE"]},  # of an image that has one
        name=f"weighbridge-{request.run.id}-{request.name}",
        hostname=None if options.network == "host" else request.name[:63],  # the host's, which the host can resolve
        labels=engine.labels,
        network=attachment.network,
        networking_config=_fixed(engine, attachment),
        ports=attachment.ports,
        read_only=mount is None or mount.way != "layer",
        volumes=volumes,
        mounts=mounts,
        security_opt=_security(options, engine.host, request.userland, [*mounts, *volumes]),
        tmpfs={folder: "mode=1777,exec" for folder in ("/tmp", "/run") if folder != request.userland.layered},  # noqa: S108
        cgroup_parent=engine.cgroup_parent,
        cpu_quota=limits.cpu_quota_us,
        cpu_period=limits.cpu_period_us if limits.cpus is not None else None,
        mem_limit=limits.memory,
        memswap_limit=-1 if limits.memory is not None else None,  # as in a control group: swap is not limited
        cpuset_cpus=limits.cpuset,
        shm_size=request.shm_size,
        sysctls=dict(request.sysctls),
        environment={**options.variables, **environment_of(request.run.id)},
        **process_options(engine, request.userland, options.open_files, options.pids_limit),
        **confined.docker_options(options, engine.host.read),
        extra_hosts=dict(request.supporting_services.addresses) if request.supporting_services else None,
    )
    if not engine.disposable or request.joined_site:  # an engine of ours takes the run's own with it
        stack.callback(quietly, container.remove, force=True, v=True)
    return container


def _security(options: DockerOptions, host: Host, userland: Userland, mounted: Sequence[Any]) -> list[str]:
    """Return the container's security options; a mount whose name has no slash is a volume, no folder of the host."""
    files_of_host = any(not isinstance(each, str) or "/" in each for each in mounted)
    if runs_for_user(userland):  # natively set-user-id has no effect for a user, who is in a user namespace
        options = options.model_copy(update={"no_new_privileges": True})
    return [*confined.security_options(options), *selinux.security_options(host.read, files_of_host=files_of_host)]


def _start(engine: Engine, container: Any, options: DockerOptions, attachment: ContainerAttachment) -> Attached:
    attached = attachment.start(container)
    container.reload()
    must_be_there(engine, container)
    disposable = engine.host.capabilities.disposable
    if disposable is not None and options.network not in ("none", "host"):
        pid = int(container.attrs["State"]["Pid"])
        disposable.keep_offloads(pid)
        without_offloads(disposable, pid, options.no_offloads, on_bridge=options.network == "bridge")
    return attached


def _storage(engine: Engine, request: SiteRequest) -> AbstractContextManager[Mount]:
    assert request.storage is not None
    return request.storage.open(MountRequest(request.run, engine.host, request.name, engine))


def _fixed(engine: Engine, attachment: ContainerAttachment) -> dict[str, Any] | None:
    """Return the container's fixed address in its network; two hosts' engines do not know each other's addresses."""
    if attachment.ip is None:
        return None
    return {attachment.network: engine.client.api.create_endpoint_config(ipv4_address=attachment.ip)}


def _addresses(
    container: Any, options: DockerOptions, request: SiteRequest, engine: Engine, attachment: ContainerAttachment
) -> tuple[str, str]:
    """Return the address at which the other role reaches the container, and the one to which servers bind."""
    if attachment.network in ("none", "host"):
        return (
            (engine.host.address,) * 2 if request.separate_hosts and options.network == "host" else ("127.0.0.1",) * 2
        )
    own = str(container.attrs["NetworkSettings"]["Networks"][attachment.network]["IPAddress"])
    if not options.publish or request.role == "client" or request.joined_site:
        return own, own
    return _published_on(options, request, engine.host, attachment.created_network), "0.0.0.0"  # noqa: S104


PLUGIN = Docker()
