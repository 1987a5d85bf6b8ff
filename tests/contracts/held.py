"""What is asked of every plug-in, whoever wrote it: each check takes one and asserts."""

import json
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, get_args

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.model.host import HostTraits
from weighbridge.model.host_kind import HostKind
from weighbridge.model.host_options import HostOptions
from weighbridge.model.mount import MountRequest, Way
from weighbridge.model.options import STORED, Options
from weighbridge.model.plugin import Durability, Environment, Plugin, Readiness
from weighbridge.model.site import RunContext
from weighbridge.model.source_options import SourceOptions
from weighbridge.model.storage import EnvironmentOptions, Storage, StorageOptions
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import UserlandSource
from weighbridge.study.loader import option_models

PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")


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


def environment_and_storage_fit(environment: Environment) -> None:
    assert environment.mounts <= {*get_args(Way)}
    assert issubclass(environment.options, EnvironmentOptions) == bool(environment.mounts)
    if environment.storage:
        assert registry.storage()[environment.storage].way in environment.mounts


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


def holds_as_host(plugin: HostKind, given: Mapping[str, Any], folder: Path) -> None:
    assert issubclass(plugin.options, HostOptions)
    _is_of_its_kind(plugin)
    options = plugin.options.model_validate({"kind": plugin.kind, **given})
    assert isinstance(options.traits, HostTraits)
    assert options.traits.here or not options.traits.this_machine
    assert options.traits.reaches(options.traits), "two hosts of one kind reach one another"
    assert options.description and "\n" not in options.description
    answers(plugin.readiness())
    with ExitStack() as stack:
        run = RunContext("0123456789ab", folder, folder, stack)
        assert isinstance(plugin.open("a", options, run, (options,)), AbstractContextManager)
    assert not list(folder.iterdir()), "it has done something before it was entered"
