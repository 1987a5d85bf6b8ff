"""Finds plug-ins in packages of the core and of features, and plug-ins of other distributions by entry points.

A module has one plug-in, an object named ``PLUGIN``, or several, a tuple named ``PLUGINS``. An entry point names
either of them.
"""

import functools
import importlib
import importlib.util
import itertools
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from weighbridge.errors import Unavailable, WeighbridgeError
from weighbridge.model.adapter import Adapter
from weighbridge.model.cleanup import Cleanup
from weighbridge.model.environment import Environment, misplaced
from weighbridge.model.host import THIS_MACHINE, HostTraits
from weighbridge.model.host_kind import HostKind
from weighbridge.model.mechanism import Mechanism
from weighbridge.model.plugin import Plugin
from weighbridge.model.storage import Storage
from weighbridge.model.userland_source import UserlandSource
from weighbridge.model.workload import Workload

P = TypeVar("P", bound=Plugin)
_NATIVE = "native"
"""The environment that is the host itself on most kinds of hosts."""
_MEND = "fix or uninstall it"
_RENAMED = {
    "readiness": "ready", "unmet": "ready", "problems": "check", "unplaceable": "on_clusters",
    "lacking_on": "ready_on",
}  # fmt: skip
"""Members of plug-ins that nothing calls any more, with the present ones."""


class RegistryError(WeighbridgeError):
    """A module cannot be loaded or has no plug-in, or two have the same kind: a bug here or in an add-on."""


def register(plugins: Iterable[tuple[str, object]], base: type[P]) -> Mapping[str, P]:
    """Return the plug-ins by kind, sorted; ``plugins`` has each object with its origin. Raises RegistryError."""
    by_kind: dict[str, P] = {}
    origin: dict[str, str] = {}
    for where, plugin in plugins:
        if not isinstance(plugin, base):
            raise RegistryError(f"{where} has no PLUGIN of type {base.__name__}: {_MEND}")
        if lacking := [name for name in _needed(base) if not hasattr(plugin, name)]:
            raise RegistryError(f"{where}: its {base.__name__} has no {' and no '.join(lacking)}: {_MEND}")
        if old := [name for name in _RENAMED if hasattr(plugin, name) and not hasattr(base, name)]:
            raise RegistryError(f"{where}: rename {', '.join(f'{name} to {_RENAMED[name]}' for name in old)}")
        if plugin.kind in by_kind:
            raise RegistryError(f"{where} and {origin[plugin.kind]} both define the kind '{plugin.kind}': {_MEND}")
        by_kind[plugin.kind], origin[plugin.kind] = plugin, where
    return MappingProxyType(dict(sorted(by_kind.items())))


def _needed(base: type[Plugin]) -> Iterable[str]:
    """Return the members that a kind of plug-ins declares without a value."""
    declared = dict.fromkeys(name for each in base.__mro__ for name in vars(each).get("__annotations__", {}))
    return (name for name in declared if not name.startswith("_") and not hasattr(base, name))


def discover(package_name: str, group: str = "") -> Iterable[tuple[str, object]]:
    """Yield the objects of a package's modules, and of entry points of ``group`` (default: the package).

    A feature has plug-ins in a folder that is named like the last word of the group. Without a package there are only
    these.
    """
    group = group or package_name
    for package in _packages(package_name, group):
        for module_info in pkgutil.iter_modules(importlib.import_module(package).__path__):
            if not module_info.name.startswith("_"):  # code that plug-ins share
                yield from _in_module(f"{package}.{module_info.name}")
    for entry in entry_points(group=group):
        where = f"entry point {entry.name} of {entry.dist.name if entry.dist else '?'}"
        yield from _named(where, _loaded(where, entry.load))


class PlugIns(Mapping[str, P]):
    """The plug-ins of one base class by kind, sorted.

    The plug-ins of Weighbridge are in modules that are named like their kinds, so a plug-in that is needed alone is
    loaded alone. All are loaded to list them, or to look for a kind without such a module.
    """

    def __init__(self, base: type[P], package: str, group: str = "") -> None:
        self._base, self._package, self._group = base, package, group or package
        self._single: dict[str, P] = {}

    def __getitem__(self, kind: str) -> P:
        if kind not in self._single:
            self._single[kind] = self._from_own_module(kind) or self._every[kind]
        return self._single[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._every)

    def __len__(self) -> int:
        return len(self._every)

    @functools.cached_property
    def _every(self) -> Mapping[str, P]:
        return register(discover(self._package, self._group), self._base)

    def _from_own_module(self, kind: str) -> P | None:
        module = kind.replace("-", "_")
        if not module.isidentifier() or module.startswith("_"):
            return None
        for package in _packages(self._package, self._group):
            spec = importlib.util.find_spec(f"{package}.{module}")
            if spec is not None and spec.has_location:  # a folder of data has none
                return register(_in_module(f"{package}.{module}"), self._base).get(kind)
        return None


def _packages(package_name: str, group: str) -> Iterable[str]:
    """Return the packages with plug-ins of a group: the core's, if it is named, and those that features have."""
    return filter(None, (package_name, *_in_features(group.rpartition(".")[2])))


def _in_module(name: str) -> Iterable[tuple[str, object]]:
    """Return the plug-ins of a module with the module's name."""
    module = _loaded(name, functools.partial(importlib.import_module, name))
    return _named(name, getattr(module, "PLUGINS", None) or getattr(module, "PLUGIN", None))


def _in_features(folder: str) -> Iterable[str]:
    """Return the packages with this name in features."""
    paths = sorted((Path(__file__).parent / "features").glob(f"*/{folder}/__init__.py"))
    return (f"weighbridge.features.{path.parts[-3]}.{folder}" for path in paths)


def _named(where: str, loaded: object) -> Iterable[tuple[str, object]]:
    """Return an object, or each object of a tuple, with the name of the place that defines it."""
    return ((where, each) for each in (loaded if isinstance(loaded, tuple) else (loaded,)))


def _loaded(where: str, load: Callable[[], object]) -> object:
    """Return the result of ``load``; raise RegistryError if the plug-in's own code fails in any way."""
    try:
        return load()
    except Exception as error:
        message = f"{where} cannot be loaded ({type(error).__name__}: {error}): {_MEND}"
        raise RegistryError(message) from error


@functools.cache
def adapters() -> Mapping[str, Adapter]:
    """Return every adapter, which reads the output of one program, by its kind."""
    return PlugIns(Adapter, "weighbridge.adapters")


@functools.cache
def environments() -> Mapping[str, Environment]:
    """Return every environment by its kind."""
    return PlugIns(Environment, "weighbridge.environments")  # type: ignore[type-abstract]


def bare_host(traits: HostTraits) -> tuple[Environment, Any]:
    """Return the environment that is a host with these traits itself, for roles outside of all others; its options.

    Raises RegistryError if there is none (`has_bare_host`).
    """
    if (found := next(_bare_hosts(traits), None)) is None:
        raise RegistryError("no environment is the host itself")
    return found


def has_bare_host(traits: HostTraits) -> bool:
    """Return whether roles outside of all environments can be on hosts with these traits."""
    return next(_bare_hosts(traits), None) is not None


def _bare_hosts(traits: HostTraits) -> Iterator[tuple[Environment, Any]]:
    """Yield the environments that are a host with these traits itself; ``native`` first, without loading others."""
    every = environments()
    for kind in itertools.chain([_NATIVE], every):
        if (options := every[kind].as_host(traits)) is not None:
            yield every[kind], options


def weighed_in(traits: HostTraits = THIS_MACHINE) -> Mapping[str, Mapping[str, Any]]:
    """Return each environment on hosts with these traits that ``weigh --in`` can name, by name, as in a study.

    Raises RegistryError if two environments have the same name.
    """
    by_name: dict[str, Mapping[str, Any]] = {}
    for kind, environment in environments().items():
        for name, options in environment.weighed_in().items() if not misplaced(environment, traits) else ():
            if name in by_name:
                raise RegistryError(f"the environments {by_name[name]['kind']} and {kind} are both '{name}' of --in")
            by_name[name] = {"kind": kind, **options}
    return MappingProxyType(by_name)


def environment_named(name: str, traits: HostTraits = THIS_MACHINE) -> Mapping[str, Any] | None:
    """Return the environment of `weighed_in` with a name, or None. One that is named after its kind comes first."""
    environment = environments().get(name)
    if environment is not None and name in environment.weighed_in() and not misplaced(environment, traits):
        return {"kind": name, **environment.weighed_in()[name]}
    return weighed_in(traits).get(name)


def bare_host_name(traits: HostTraits) -> str:
    """Return the name of `weighed_in` that is a host with these traits itself. Raises RegistryError without one."""
    environment, options = bare_host(traits)
    for name, written in environment.weighed_in().items():
        if environment.options.model_validate(written) == options:
            return name
    raise RegistryError(f"the environment {environment.kind} has no name of --in as the host itself")


def of_clusters() -> Mapping[str, HostKind]:
    """Return every kind of host that belongs to a cluster, where another program starts everything."""
    return {kind: plugin for kind, plugin in hosts().items() if plugin.options.traits.managed}


def required_of_clusters() -> Mapping[str, HostKind]:
    """Return `of_clusters`. Raises Unavailable if there is none."""
    if not (kinds := of_clusters()):
        raise Unavailable("no plug-in has hosts in a cluster: install a Weighbridge that has its feature kubernetes")
    return kinds


@functools.cache
def mechanisms() -> Mapping[str, Mechanism]:
    """Return every mechanism by its kind."""
    return PlugIns(Mechanism, "", "weighbridge.mechanisms")  # type: ignore[type-abstract]


@functools.cache
def hosts() -> Mapping[str, HostKind]:
    """Return every kind of host."""
    return PlugIns(HostKind, "weighbridge.hosts.kinds", "weighbridge.hosts")  # type: ignore[type-abstract]


@functools.cache
def storage() -> Mapping[str, Storage]:
    """Return every storage back end by its kind."""
    return PlugIns(Storage, "weighbridge.storage")  # type: ignore[type-abstract]


@functools.cache
def userlands() -> Mapping[str, UserlandSource]:
    """Return every source of root filesystems by its kind."""
    return PlugIns(UserlandSource, "weighbridge.userland.sources", "weighbridge.userlands")  # type: ignore[type-abstract]


@functools.cache
def workloads() -> Mapping[str, Workload]:
    """Return every workload by its kind."""
    return PlugIns(Workload, "weighbridge.workloads")  # type: ignore[type-abstract]


def cleanups(plugins: Iterable[Plugin] | None = None) -> tuple[Cleanup, ...]:
    """Return every kind of leftover of runs once: first of hosts, then of environments and storage.

    With ``plugins``, return only the kinds of these, in their order.
    """
    if plugins is None:
        plugins = [*hosts().values(), *environments().values(), *storage().values()]
    return tuple({type(each): each for plugin in plugins for each in plugin.cleanup}.values())
