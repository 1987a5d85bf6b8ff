"""Converts a study to the files of a kit."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weighbridge import registry
from weighbridge.errors import StudyError
from weighbridge.features.kit.compose import CELL, CPUS, IMAGE, compose_file, settings_in
from weighbridge.features.kit.contents import Contents, KitCell, KitEnvironment, contents
from weighbridge.features.kit.image import image_files
from weighbridge.features.kit.rendering import render, static
from weighbridge.features.kit.scripts import cell_files, listens, secrets_of
from weighbridge.features.kit.text import kit_variable
from weighbridge.model.by_hand import Recipe, Setting
from weighbridge.model.secret import SecretName, secrets_in
from weighbridge.model.study import Parameter, Study
from weighbridge.model.userland import UserlandSpec

_LEVEL_PAUSE = ".pause_between_levels"
"""The end of the name of a source's parameter for the pause after a workload, after the workload's name."""


@dataclass(frozen=True, slots=True)
class KitFile:
    """A file's content, and whether it is executable."""

    data: bytes
    executable: bool = False


def kit(study: Study, parameters: Sequence[Parameter] = ()) -> Mapping[str, KitFile]:
    """Return the files of a kit by path, always the same for a study; ``parameters`` are the published ones.

    Raises StudyError if Docker Compose can make no environment, UserlandError for wrong packages.
    """
    kit_contents = _as_published(contents(study), parameters)
    recipe = _recipe(kit_contents)
    settings = _settings(kit_contents, parameters)
    image = settings[0].value
    files: dict[str, bytes] = {}
    for environment in kit_contents.environments:
        folder = f"environments/{environment.folder}"
        for cell in environment.cells:
            scripts, read = cell_files(environment, cell)
            files |= scripts | read
        if environment.by_hand.services:
            files[f"{folder}/compose.yaml"] = compose_file(
                environment, study.resources_of(environment.arm.name), image
            ).encode()
        files[f"{folder}/run.sh"] = _environment_script(environment, parameters)
    files |= {} if recipe.cannot else image_files(recipe)
    files |= {name: static(name) for name in ("rounds.sh", "listening.sh", "summary.sh")}
    files["run.sh"] = render("run.sh.j2", environments=[each.folder for each in kit_contents.environments])
    files[".env"] = "".join(
        f"# {each.description}\n{each.name}={shlex.quote(each.value)}\n" for each in settings
    ).encode()
    files["study.yaml"] = study.text.encode(errors="replace")
    if parameters:
        files["parameters.csv"] = _table(parameters)
    files["README.md"] = _readme(kit_contents, recipe, settings, parameters)
    return {path: KitFile(data, path.endswith(".sh")) for path, data in sorted(files.items())}


def _as_published(kit_contents: Contents, parameters: Sequence[Parameter]) -> Contents:
    """Return the contents with the source's options of programs: ``client_options``, or those of one workload.

    A measured program whose JSON summary.sh reads is unchanged, because iperf3's --verbose breaks the JSON.
    """
    stated = {each.parameter: tuple(shlex.split(each.value)) for each in parameters if "_options" in each.parameter}

    def with_published(cell: KitCell) -> KitCell:
        read = cell.roles[-1:] if cell.workload.jq(cell.options) else ()
        names = {
            role: (f"{cell.cell.workload}.{role}_options", f"{role}_options")
            for role in cell.roles
            if role not in read
        }
        return replace(cell, published={
            role: stated[name] for role, every in names.items() for name in reversed(every) if name in stated
        })  # fmt: skip

    environments = (replace(each, cells=tuple(map(with_published, each.cells))) for each in kit_contents.environments)
    return replace(kit_contents, environments=tuple(environments))


def _recipe(kit_contents: Contents) -> Recipe:
    spec = UserlandSpec.union(
        cell.workload.userland(cell.options) for each in kit_contents.environments for cell in each.cells
    )
    options = kit_contents.study.file.userland
    return registry.userlands()[options.kind].recipe(options, spec)


def _settings(kit_contents: Contents, parameters: Sequence[Parameter]) -> list[Setting]:
    study = kit_contents.study
    repetitions = study.file.repetitions
    pause = _seconds(parameters, "pause_between_repetitions")
    cpus = _cpus(study)
    settings = [
        Setting(IMAGE, f"weighbridge-kit-{_tag(study.file.study)}", "the image with the programs"),
        Setting("ROUNDS", str(repetitions.blocks or repetitions.min), "number of rounds of each workload"),
        Setting(
            "PAUSE",
            pause or "1",
            "seconds between two rounds" + (", as published" if pause else ""),
        ),
        Setting("LEVEL_PAUSE", "", f"seconds after the last round of a workload; empty: {_level_pause(parameters)}"),
        Setting(
            CELL, kit_contents.environments[0].cells[0].folder, "the workload, if you call Docker Compose by hand"
        ),
        *(Setting(name, cpus[role], f"CPUs of the {role}; empty: all") for role, name in CPUS.items()),
    ]
    environment_settings = (
        each for environment in kit_contents.environments for each in settings_in(_services_and_networks(environment))
    )
    return [*settings, *dict.fromkeys(environment_settings)]


def _level_pause(parameters: Sequence[Parameter]) -> str:
    """Return in words which pause an empty setting of the kit means."""
    return "as published" if any(each.parameter.endswith(_LEVEL_PAUSE) for each in parameters) else "none"


def _cpus(study: Study) -> dict[str, str]:
    pin, hosts = study.file.resources.pin, study.file.hosts
    if pin == "spread":
        return {"server": "0", "client": "1"}
    host_cpus = {"server": hosts[study.server_host].own_cpus, "client": hosts[study.client_hosts[0]].own_cpus}
    return {role: str((pin or {}).get(role) or host_cpus[role] or "") for role in CPUS}  # type: ignore[call-overload]


def _services_and_networks(environment: KitEnvironment) -> list[Any]:
    return [environment.by_hand.services, environment.by_hand.networks]


def _tag(name: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in name.lower()).strip("-") or "study"


def _seconds(parameters: Sequence[Parameter], name: str) -> str:
    return next((each.value for each in parameters if each.parameter == name and each.unit == "s"), "")


def _environment_script(environment: KitEnvironment, parameters: Sequence[Parameter]) -> bytes:
    cells = []
    for cell in environment.cells:
        ports, signal = listens(cell)
        pause = _seconds(parameters, f"{cell.cell.workload}{_LEVEL_PAUSE}") or "0"
        cells.append(
            {"folder": cell.folder, "roles": " ".join(cell.roles), "ports": ports, "signal": signal, "pause": pause,
             "label": cell.cell.label}
        )  # fmt: skip
    return render("environment.sh.j2", environment=environment, cells=cells, **_places(environment))


def _places(environment: KitEnvironment) -> dict[str, str]:
    return {role: "compose" if role in environment.inside else "native" for role in CPUS}


def _table(parameters: Sequence[Parameter]) -> bytes:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("parameter", "value", "unit"))
    writer.writerows((each.parameter, each.value, each.unit) for each in parameters)
    return text.getvalue().encode()


def _readme(
    kit_contents: Contents, recipe: Recipe, settings: Sequence[Setting], parameters: Sequence[Parameter]
) -> bytes:
    first = dict.fromkeys(each for environment in kit_contents.environments for each in environment.by_hand.first)
    environments = [
        {
            "name": each.arm.name,
            "folder": each.folder,
            "how": _networks(each) if each.inside else "the machine's own programs",
            **_places(each),
        }
        for each in kit_contents.environments
    ]
    workloads = [
        {"label": cell.cell.label, "folder": cell.folder, "port": _port(cell), "command": _measured(cell)}
        for cell in kit_contents.environments[0].cells
    ]
    cells = [cell for each in kit_contents.environments for cell in each.cells]
    text_only = dict.fromkeys(f"`{cell.folder}`" for cell in cells if not cell.workload.jq(cell.options))
    return render(
        "README.md.j2", study=kit_contents.study, recipe=recipe, settings=settings, parameters=parameters,
        first=list(first), environments=environments, workloads=workloads, left_out=kit_contents.left_out,
        differs=list(_differs(kit_contents)),
        rounds=settings[1].value, options=any(cell.published for cell in cells), unsummarised=list(text_only),
        natively=any("native" in _places(each).values() for each in kit_contents.environments),
    )  # fmt: skip


def _networks(environment: KitEnvironment) -> str:
    service = environment.by_hand.services[min(environment.inside)]
    drivers = [str(each.get("driver", "")) for each in environment.by_hand.networks.values()]
    network = str(service.get("network_mode") or ", ".join(dict.fromkeys(drivers)))
    return f"Docker Compose, network {network}" + (", published ports" if _publishes(environment) else "")


def _publishes(environment: KitEnvironment) -> bool:
    return any("ports" in each for each in environment.by_hand.services.values())


def _port(cell: KitCell) -> str:
    return str(cell.ends["client"].port) if "server" in cell.roles else ""


def _measured(cell: KitCell) -> str:
    return shlex.join(cell.command(cell.roles[-1]).argv)


def _secrets(kit_contents: Contents) -> dict[str, SecretName]:
    """Return the secrets that the kit needs, by their variables. Raises StudyError if two need the same variable."""
    secrets: dict[str, SecretName] = {}
    for environment in kit_contents.environments:
        for name in (
            *secrets_in(str(environment.by_hand.services)),
            *(n for cell in environment.cells for n in secrets_of(cell)),
        ):
            if (other := secrets.setdefault(kit_variable(name), name)) != name:
                raise StudyError(
                    f"the secrets {other} and {name} have the same variable in a kit: rename one of them"
                )
    return secrets


def _differs(kit_contents: Contents) -> Iterator[str]:
    file = kit_contents.study.file
    for environment in kit_contents.environments:
        yield from (f"{environment.arm.name}: {each}" for each in environment.by_hand.differs)
    hosts = {name: host.description for name, host in file.hosts.items() if not host.traits.this_machine}
    if hosts:
        listed = ", ".join(f"{name} ({description})" for name, description in hosts.items())
        layout = "here both roles are on one machine, with no cable between them"
        yield f"the study's hosts are not used: {listed}; {layout}"
    if any(cell.link for cell in kit_contents.study.cells):
        yield "cables have no rate limits here, so no workload lifts them"
    if any(each.memory is not None or each.cpus is not None for each in kit_contents.study.all_resources.values()):
        yield "CPU and memory limits apply to containers only"
    if file.cpu_idle != "halt":
        yield "idle CPUs halt or poll as the machine is set up"
    if any(each.data for each in kit_contents.environments):
        yield "native data is kept in /srv"
    if any(
        cell.workload.cold(cell.options) for environment in kit_contents.environments for cell in environment.cells
    ):
        yield "page caches are not emptied before a round: run sync, then echo 3 > /proc/sys/vm/drop_caches, as root"
    if any(
        cell.workload.check(cell.options, cell.ends[cell.roles[-1]])
        for each in kit_contents.environments
        for cell in each.cells
    ):
        yield "a check sees what the program printed, but runs in its own container, without its /tmp"
    if secrets := _secrets(kit_contents):
        variables = ", ".join(
            f"{variable} ({name})" if variable != name else name for variable, name in secrets.items()
        )
        yield f"values of secrets are not in the kit: set {variables} in your environment"
    yield "resource use is not metered: run sar or docker stats alongside"
