"""Supporting services of a study in an engine: started in their order, ready before the first site is opened.

Everything has the run's label, so that it goes with what else the run has in the engine, by ``clean`` too.
"""

import hashlib
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from weighbridge.engines.client import engine_errors
from weighbridge.engines.docker import Engine
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.linux import selinux
from weighbridge.linux.network import bound
from weighbridge.linux.process import link_prefix
from weighbridge.model.host import RunContext
from weighbridge.model.site import Neighbourhood
from weighbridge.model.supporting_service import Healthcheck, SupportingService, in_order
from weighbridge.secret_values import revealed

_AGAIN_S = 0.1
_SAID = 300


def start_supporting_services(
    run: RunContext, engine: Engine, services: Mapping[str, SupportingService]
) -> Neighbourhood:
    """Start the supporting services in order, each once the last is ready. Raises Unavailable, EnvironmentLost."""
    images = {name: _image(engine, name, service) for name, service in services.items()}
    link = f"{link_prefix(run.id)}c"
    # its name sorts after the networks of sites: an engine uses the default route of the first
    with engine_errors("creating the network of the supporting services"):
        network = engine.client.networks.create(
            f"weighbridge-{run.id}-companions", driver="bridge", labels=engine.labels,
            options={"com.docker.network.bridge.name": link},
        )  # fmt: skip
        network.reload()
    volumes = {each for service in services.values() for each in service.volumes.values()}
    for volume in sorted(volumes):
        with engine_errors(f"creating the volume {volume}"):
            engine.client.volumes.create(_named(run, volume), labels=engine.labels)
    started: dict[str, Any] = {}
    for name in in_order(services):
        run.say(f"starting the supporting service {name}")
        started[name] = _start(run, engine, network.name, name, services[name], images[name].id)
    networks = {name: container.attrs["NetworkSettings"]["Networks"] for name, container in started.items()}
    addresses = {name: str(each[network.name]["IPAddress"]) for name, each in networks.items()}
    subnet = str(network.attrs["IPAM"]["Config"][0]["Subnet"])
    digests = {name: image.id for name, image in images.items()} | _files(services)
    return Neighbourhood(network.name, subnet, link, addresses, digests, partial(_require, started))


def _files(services: Mapping[str, SupportingService]) -> dict[str, str]:
    """Return the digests of the files of supporting services, by ``NAME:PATH``; folders have none."""
    files = {f"{name}:{place}": Path(local) for name, each in services.items() for place, local in each.files.items()}
    try:
        return {key: hashlib.sha256(path.read_bytes()).hexdigest() for key, path in files.items() if path.is_file()}
    except OSError as error:
        raise Unavailable(f"supporting services: {error.filename} cannot be read: {error.strerror}") from error


def _require(started: Mapping[str, Any]) -> None:
    """Raise EnvironmentLost if a container has ended, or was started again with another address."""
    for name, container in started.items():
        began = container.attrs["State"]["StartedAt"]
        with engine_errors(f"supporting service {name}"):
            container.reload()
        state = container.attrs["State"]
        if not state["Running"] or state["StartedAt"] != began:
            ended = "was restarted" if state["Running"] else f"exited with code {state['ExitCode']}"
            raise EnvironmentLost(
                f"supporting service {name} {ended} during the measurement: {_last_words(container)}"
            )


def _named(run: RunContext, name: str) -> str:
    return f"weighbridge-{run.id}-companion-{name}"


def _image(engine: Engine, name: str, service: SupportingService) -> Any:
    """Return a supporting service's image without a pull; a private engine can load it."""
    from docker.errors import ImageNotFound

    with engine_errors(f"supporting service {name}: the image {service.image}"):
        try:
            return engine.client.images.get(service.image)
        except ImageNotFound:
            if service.saved is None or not engine.private:
                raise Unavailable(_missing(engine, name, service)) from None
        try:
            with Path(service.saved).open("rb") as file:
                engine.client.images.load(file)
        except OSError as error:
            sentence = f"supporting service {name}: {service.saved} cannot be read ({error.strerror})"
            raise Unavailable(sentence) from error
        try:
            return engine.client.images.get(service.image)
        except ImageNotFound:
            sentence = (
                f"supporting service {name}: {service.saved} does not contain the image {service.image}. Save "
                "it again"
            )
            raise Unavailable(sentence) from None


def _missing(engine: Engine, name: str, service: SupportingService) -> str:
    what = (
        f"supporting service {name}: the Docker engine has no image {service.image}, and Weighbridge never pulls "
        "images"
    )
    if service.saved is not None:
        return f"{what}. Try: docker load -i {service.saved}"
    if engine.private:
        ways = f"(saved: FILE; weigh: --saved {service.image}=FILE)"
        return f"{what}. Name a docker save archive {ways}, or start your own engine with the image"
    return f"{what}. Try: docker pull {service.image}"


def _start(run: RunContext, engine: Engine, network: str, name: str, service: SupportingService, image: str) -> Any:
    """Start a supporting service, wait until it is ready, and return its container."""
    volumes = {_named(run, volume): {"bind": place, "mode": "rw"} for place, volume in service.volumes.items()}
    volumes |= {local: {"bind": place, "mode": "ro"} for place, local in service.files.items()}
    api = engine.client.api
    with engine_errors(f"starting the supporting service {name}"):
        container = engine.client.containers.create(
            image,
            None if service.command is None else [*map(revealed, service.command)],
            entrypoint=None if service.entrypoint is None else [*map(revealed, service.entrypoint)],
            environment={variable: revealed(value) for variable, value in service.environment.items()},
            user=service.user,
            working_dir=service.working_dir,
            volumes=volumes,
            tmpfs=dict.fromkeys(service.tmpfs, ""),
            shm_size=service.shm_size,
            sysctls=dict(service.sysctls),
            read_only=service.read_only,
            security_opt=selinux.security_options(engine.host.read, files_of_host=bool(service.files)),
            init=service.init or None,
            healthcheck=_healthcheck(service.healthcheck),
            name=_named(run, name),
            hostname=name[:63],
            labels=engine.labels,
            cgroup_parent=engine.cgroup_parent,
            network=network,
            networking_config={network: api.create_endpoint_config(aliases=[name])},
        )
        container.start()
    _wait_until_ready(container, name, service)
    return container


def _healthcheck(check: Healthcheck | None) -> dict[str, Any] | None:
    """Return a health check in the engine's words, with times in nanoseconds."""
    if check is None:
        return None
    seconds = {"interval": check.interval, "timeout": check.timeout, "start_period": check.start_period}
    times = {key: int(value * 1e9) for key, value in seconds.items() if value}
    return {"test": ["CMD", *map(revealed, check.test)], "retries": check.retries, **times}


def _wait_until_ready(container: Any, name: str, service: SupportingService) -> None:
    deadline = time.monotonic() + service.deadline
    while True:
        with engine_errors(f"supporting service {name}"):
            container.reload()
        state = container.attrs["State"]
        if not state["Running"]:
            raise Unavailable(
                f"supporting service {name} exited with code {state['ExitCode']}: {_last_words(container)}"
            )
        if _is_ready(state, service):
            return
        if (state.get("Health") or {}).get("Status") == "unhealthy" or time.monotonic() > deadline:
            sentence = f"supporting service {name} was not ready within {service.deadline:g} s (deadline)"
            raise Unavailable(f"{sentence}: {_last_words(container)}")
        time.sleep(_AGAIN_S)


def _is_ready(state: Mapping[str, Any], service: SupportingService) -> bool:
    if service.port is not None:
        return listens(int(state["Pid"]), service.port)
    health = state.get("Health")  # of its own, or of its image
    return health is None or health["Status"] == "healthy"


def listens(pid: int, port: int) -> bool:
    """Return whether a program listens on a TCP port in the network of a process here, other than on loopback."""
    return port in bound("tcp", Path(f"/proc/{pid}"), reachable=True)


def _last_words(container: Any) -> str:
    try:
        with engine_errors("its log"):
            text = container.logs(tail=3).decode(errors="replace").strip()
    except (Unavailable, EnvironmentLost):
        text = ""
    return text[-_SAID:].replace("\n", " / ") or "it printed nothing"
