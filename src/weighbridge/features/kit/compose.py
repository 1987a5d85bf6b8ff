"""An environment as a file for Docker Compose, with one service for each role in it."""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weighbridge.features.kit.contents import KitEnvironment
from weighbridge.features.kit.scripts import secrets_of
from weighbridge.features.kit.text import compose_text, kit_variable, one_line
from weighbridge.model.by_hand import Setting
from weighbridge.model.command import SITE_ENV
from weighbridge.model.host import Limits
from weighbridge.model.secret import reference
from weighbridge.model.site import DATA
from weighbridge.model.study import Resources

KIT = "/kit"
"""The folder of the kit's files in containers."""
IMAGE = "IMAGE"
CELL = "CELL"
CPUS = {"server": "SERVER_CPUS", "client": "CLIENT_CPUS"}
"""The setting of each role's CPUs."""
_TMPFS = ("/tmp:mode=1777,exec", "/run:mode=1777,exec")  # noqa: S108 - folders of the container


def compose_file(environment: KitEnvironment, resources: Resources, image: str) -> str:
    """Return the file's text; ``image`` is the default name of the image."""
    from ruamel.yaml import YAML

    document: dict[str, Any] = {
        "services": {
            role: _with_own(_service(environment, role, resources, image), environment.by_hand.services[role])
            for role in sorted(environment.inside, reverse=True)
        }
    }
    if environment.by_hand.networks:
        document["networks"] = _literal(environment.by_hand.networks)
    if environment.data == "data":
        document["volumes"] = {"data": {}}
    yaml = YAML()
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = io.StringIO()
    text.write(
        f"# {one_line(environment.arm.name)}: settings are in .env, and the programs of each CELL are in its folder\n"
    )
    yaml.dump(document, text)
    return text.getvalue()


def limits(resources: Resources, role: str) -> dict[str, Any]:
    """Return the limits of a role's container in Docker Compose's format."""
    service_limits: dict[str, Any] = {}
    if resources.cpus is not None:
        cpu_limits = Limits(cpus=resources.cpus, cpu_period_us=round(resources.cpu_period * 1e6))
        service_limits |= {"cpu_period": cpu_limits.cpu_period_us, "cpu_quota": cpu_limits.cpu_quota_us}
    if resources.memory is not None:
        service_limits |= {"mem_limit": int(resources.memory), "memswap_limit": -1}
    return {**service_limits, "cpuset": f"${{{CPUS[role]}:-}}"}


def settings_in(value: Any) -> Iterator[Setting]:
    """Yield the settings anywhere in an environment's values."""
    if isinstance(value, Setting):
        yield value
    elif isinstance(value, Mapping):
        for element in value.values():
            yield from settings_in(element)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for element in value:
            yield from settings_in(element)


def _service(environment: KitEnvironment, role: str, resources: Resources, image: str) -> dict[str, Any]:
    first, mounts = environment.cells[0].folder, [f"../..:{KIT}:ro"]
    script = "solo" if environment.cells[0].roles == ("solo",) else role
    if environment.data and role == environment.solo:
        mounts.append(f"{environment.data}:{DATA}")
    return {
        "image": f"${{{IMAGE}:-{image}}}",
        "command": ["sh", f"{KIT}/environments/{environment.folder}/${{{CELL}:-{first}}}/{script}.sh"],
        "init": True,
        "read_only": not environment.writes_layer,
        "tmpfs": list(_TMPFS),
        "volumes": mounts,
        "environment": {**SITE_ENV, **_secrets(environment)},
        **limits(resources, role),
        **({} if environment.arm.shm_size is None else {"shm_size": environment.arm.shm_size}),
        **({"sysctls": dict(environment.arm.sysctls)} if environment.arm.sysctls else {}),
    }


def _with_own(service: Mapping[str, Any], additions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a service with the keys that its environment adds, including variables."""
    added = _literal(additions)
    return {**service, **added, "environment": {**service["environment"], **added.get("environment", {})}}


def _secrets(environment: KitEnvironment) -> dict[str, str]:
    """Return the variables from which scripts read the values of secrets; the user sets them."""
    names = (name for cell in environment.cells for name in secrets_of(cell))
    return {kit_variable(name): compose_text(reference(name)) for name in names}


def _literal(value: Any) -> Any:
    """Return a value with escaped dollar signs, and with settings as Docker Compose replaces them."""
    if isinstance(value, Setting):
        return f"${{{value.name}:-{value.value}}}"
    if isinstance(value, str):
        return compose_text(value)
    if isinstance(value, Mapping):
        return {key: _literal(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_literal(each) for each in value]
    return value
