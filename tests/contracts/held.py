"""What is asked of every plug-in, whoever wrote it: each check takes one and asserts."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, get_args

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.model.by_hand import ByHandRequest
from weighbridge.model.command import Completed, Transport
from weighbridge.model.host import HostTraits
from weighbridge.model.host_kind import HostKind
from weighbridge.model.host_options import HostOptions
from weighbridge.model.isolation import Layer, Layers, SiteLayers
from weighbridge.model.measurement import TrialFailure
from weighbridge.model.mount import MountRequest, Way
from weighbridge.model.options import STORED, Options
from weighbridge.model.plugin import Durability, Endpoint, Environment, Needs, Plugin, Readiness, Workload
from weighbridge.model.site import RunContext
from weighbridge.model.source_options import SourceOptions
from weighbridge.model.storage import EnvironmentOptions, Storage, StorageOptions
from weighbridge.model.stored_layers import layers_json, layers_of
from weighbridge.model.study import Role
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import UserlandSource
from weighbridge.study.loader import option_models

PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
AT = Endpoint(listen="0.0.0.0", address="192.0.2.7", port=15201, client="192.0.2.8")


def every_plugin() -> dict[str, Plugin]:
    """Every plug-in of every kind, by "SECTION KIND"."""
    sections: Mapping[str, Mapping[str, Plugin]] = {
        "environment": registry.environments(),
        "workload": registry.workloads(),
        "host": registry.hosts(),
        "storage": registry.storage(),
        "userland": registry.userlands(),
    }
    return {f"{section} {kind}": plugin for section, known in sections.items() for kind, plugin in known.items()}


def describes_itself(plugin: Plugin) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9-]*", plugin.kind)
    assert 10 <= len(plugin.summary) <= 120
    assert "\n" not in plugin.summary and not plugin.summary.endswith(".")
    assert type(plugin).__doc__ and plugin.options.__doc__
    assert "\n" not in plugin.unverified() and not plugin.unverified().endswith(".")


def names_its_programs(plugin: Plugin) -> None:
    for program, package in plugin.programs.items():
        assert "/" not in program
        assert PACKAGE.fullmatch(package)


def has_strict_options(plugin: Plugin, given: Mapping[str, Any]) -> None:
    """``given``: the options without which none can be made."""
    assert issubclass(plugin.options, Options)
    options = plugin.options.model_validate(given)
    stored = json.loads(options.model_dump_json())
    context = {**option_models(), STORED: True}
    assert plugin.options.model_validate(stored, context=context) == options  # as a run that is continued reads them
    try:
        plugin.options.model_validate({**given, "no such key": 1})
    except ValueError as error:
        assert "xtra" in str(error)
    else:
        raise AssertionError("an unknown key was taken")
    schema = plugin.options.model_json_schema()
    json.dumps(schema)
    assert schema["additionalProperties"] is False


def _is_of_its_kind(plugin: Plugin) -> None:
    """A study's ``kind`` chooses the model: it must take no other."""
    assert get_args(plugin.options.model_fields["kind"].annotation) == (plugin.kind,)


def answers(ready: Readiness) -> None:
    assert isinstance(ready, Readiness)
    assert ready.ready or (ready.detail and ready.remedy)
    assert "\n" not in ready.detail + ready.remedy


def holds_as_environment(environment: Environment) -> None:
    _fits_storage(environment)
    options = environment.options()
    assert environment.options.model_validate_json(options.model_dump_json()) == options
    before = options.model_copy(deep=True)
    assert environment.problems(options, needs=Needs(network=False)) == [], "its defaults have problems"
    assert not [problem for problem in environment.problems(options, needs=Needs(network=True)) if "\n" in problem]
    assert options == before, "asking has changed something"
    _is_told_how_to_be_made_by_hand(environment, options)
    ready = environment.readiness()
    answers(ready)
    assert ready == environment.readiness()
    if (lacking := environment.unmet(options, needs=Needs())) is not None:
        answers(lacking)
        assert not lacking.ready
    nothing: Any = None
    assert isinstance(environment.open(options, nothing), AbstractContextManager), "it needs a request to be asked"


def _is_told_how_to_be_made_by_hand(environment: Environment, options: Any) -> None:
    request = ByHandRequest(1, (("tcp", 5201),), frozenset({"server", "client"}))
    by_hand = environment.by_hand(options, request)
    assert by_hand == environment.by_hand(options, request)
    assert not [sentence for sentence in (by_hand.cannot, *by_hand.first, *by_hand.differs) if "\n" in sentence]
    assert {*by_hand.services} in (set(), {"server", "client"})
    assert by_hand.listen and by_hand.address and by_hand.client


def _fits_storage(environment: Environment) -> None:
    assert environment.mounts <= {*get_args(Way)}
    assert issubclass(environment.options, EnvironmentOptions) == bool(environment.mounts)
    if environment.storage:
        assert registry.storage()[environment.storage].way in environment.mounts


def holds_as_workload(workload: Workload, given: Mapping[str, Any]) -> None:
    """Under these options; what depends on an option is held under others too."""
    options = workload.options.model_validate(given)
    transports, roles = workload.transports(options), workload.roles(options)
    assert type(workload).roles is Workload.roles, "roles follow from transports"
    if load := workload.load(options):
        assert "server" in roles
        _has_bounds(workload.options.model_json_schema()["properties"][load])
    assert all(PACKAGE.fullmatch(package) for package in workload.packages)
    _gives_commands(workload, options, roles, transports)
    for role in roles:
        assert all(path.startswith(("/tmp/", "/run/")) for path in workload.files(role, options, AT))
    if (openings := workload.openings(options)) is not None:
        assert roles == ("solo",), "a fresh site publishes no port"
        assert openings.sites >= 1 and openings.settle_s >= 0
    metrics = workload.metrics(options)
    assert metrics and len({metric.name for metric in metrics}) == len(metrics)
    for metric in metrics:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name) and metric.unit
        assert metric.better in ("higher", "lower")
    asked = workload.asked_rate(options)
    assert asked is None or asked.metric in metrics
    assert workload.generator_threads(options) >= 1
    try:
        workload.parse(options, {role: Completed(("x",), 0, b"", b"", 1.0) for role in roles})
    except TrialFailure:
        return
    raise AssertionError("something was measured where nothing was printed")


def _has_bounds(load: Mapping[str, Any]) -> None:
    """Levels that make no sense are told before anything runs, by editors too."""
    (number,) = [each for each in load.get("anyOf", [load]) if each["type"] != "null"]
    assert number["type"] == "integer" and number["minimum"] >= 1
    assert 1000 <= number["maximum"] <= 10**6


def _gives_commands(workload: Workload, options: Any, roles: Sequence[Role], transports: Sequence[Transport]) -> None:
    """Argument lists under deadlines: only a server listens, and it outlasts its clients."""
    by_role = {role: workload.command(role, options, AT) for role in roles}
    warm_up = workload.warm_up(options, AT)
    for command in (*by_role.values(), *((warm_up,) if warm_up else ())):
        assert type(command.argv) is tuple and all(type(argument) is str for argument in command.argv)
        assert "/" not in command.argv[0], "programs are found through PATH"
        assert math.isfinite(command.deadline_s)
    assert 0 < workload.expected_s(options) < by_role[roles[-1]].deadline_s
    for role, command in by_role.items():
        assert bool(command.listens) == (role == "server")
        assert all(transport in transports and port == AT.port for transport, port in command.listens)
    if "server" in by_role:
        clients = by_role["client"].deadline_s + (warm_up.deadline_s if warm_up else 0.0)
        assert by_role["server"].deadline_s > clients


def holds_as_storage(storage: Storage, given: Mapping[str, Any], folder: Path) -> None:
    assert issubclass(storage.options, StorageOptions)
    _is_of_its_kind(storage)
    options = storage.options.model_validate(given)
    assert storage.way in get_args(Way)
    assert storage.durability(options) in get_args(Durability)
    assert any(storage.way in environment.mounts for environment in registry.environments().values())
    every = registry.storage()
    assert not {*storage.aliases} & {
        *every,
        *(a for other in every.values() if other is not storage for a in other.aliases),
    }
    answers(storage.readiness())
    answers(storage.readiness(options))
    with ExitStack() as stack:
        run = RunContext("0123456789ab", folder, folder, stack)
        with registry.hosts()["local"].open("a", None, run, ()) as host:
            opened = storage.open(options, MountRequest(run, host, "site"))
            assert isinstance(opened, AbstractContextManager)
    assert not list(folder.iterdir()), "it has done something before it was entered"


def holds_as_source(source: UserlandSource, given: Mapping[str, Any], cache: Path) -> None:
    assert issubclass(source.options, SourceOptions)
    _is_of_its_kind(source)
    options, spec = source.options.model_validate(given), UserlandSpec.of(["iperf3"])
    recipe = source.recipe(options, spec)
    assert bool(recipe.cannot) != bool(recipe.base), "a recipe, or why there is none"
    lacking = source.cannot_build(options, spec, cache)
    assert lacking is None or all(lacking)
    try:
        key = source.key(options, spec)
    except Unavailable as why:
        assert "\n" not in str(why)
    else:
        assert re.fullmatch(r"[0-9a-f]{16}", key)
        assert key == source.key(options, spec)
    assert not list(cache.iterdir()), "asking has built something"


def holds_as_layers(layers: Layers) -> None:
    """Those of an open host or site: what is shown beside each of its figures, and kept with the run."""
    assert type(layers) is tuple and all(type(layer) is Layer for layer in layers)
    for layer in layers:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9 ,.+-]{1,39}", layer.name), "shown in tables and legends"
        assert type(layer.emulated) is bool
    assert layers_of(layers_json(SiteLayers("a", layers))).layers == layers


def holds_as_host(plugin: HostKind, given: Mapping[str, Any], folder: Path) -> None:
    assert issubclass(plugin.options, HostOptions)
    _is_of_its_kind(plugin)
    options = plugin.options.model_validate({"kind": plugin.kind, **given})
    assert isinstance(options.traits, HostTraits)
    assert options.traits.here or not options.traits.this_machine
    assert options.traits.reaches(options.traits), "two hosts of one kind reach one another"
    assert options.description and "\n" not in options.description
    answers(plugin.readiness())
    answers(plugin.readiness(options))
    with ExitStack() as stack:
        run = RunContext("0123456789ab", folder, folder, stack)
        assert isinstance(plugin.open("a", options, run, (options,)), AbstractContextManager)
    assert not list(folder.iterdir()), "it has done something before it was entered"
