"""What is asked of every plug-in, whoever wrote it: a check takes one and says what was expected of which member."""

import json
import re
from collections.abc import Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, get_args

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.features.fleets.machine_provider import MACHINE_NAME, DriverState, MachineProvider, ProviderOptions
from weighbridge.features.fleets.providers import providers
from weighbridge.model.by_hand import ByHandRequest
from weighbridge.model.cleanup import Cleanup, Leftover, RunFolders
from weighbridge.model.command import PublishedPort
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs, misplaced
from weighbridge.model.facts import layers_json, layers_of
from weighbridge.model.host import HostTraits, RunContext
from weighbridge.model.host_kind import HostKind, HostOptions
from weighbridge.model.isolation import Layer, Layers, SiteLayers
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.names import RunId, SafeName
from weighbridge.model.options import STORED, Options
from weighbridge.model.plugin import Durability, Plugin, Readiness
from weighbridge.model.site import MountRequest, StorageMode
from weighbridge.model.storage import Storage, StorageOptions
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import SourceOptions, UserlandSource
from weighbridge.model.workload import Endpoint
from weighbridge.study.validated import option_models

PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
AT = Endpoint(listen="0.0.0.0", address="192.0.2.7", port=15201, client="192.0.2.8")


def every_plugin() -> dict[str, Plugin]:
    """Every plug-in of every kind, by "SECTION KIND"."""
    sections: Mapping[str, Mapping[str, Plugin]] = {
        "adapter": registry.adapters(),
        "environment": registry.environments(),
        "workload": registry.workloads(),
        "host": registry.hosts(),
        "storage": registry.storage(),
        "userland": registry.userlands(),
        "machines": providers(),
        "mechanism": registry.mechanisms(),
    }
    return {f"{section} {kind}": plugin for section, known in sections.items() for kind, plugin in known.items()}


def must(plugin: Plugin, holds: bool, member: str, expected: str, found: object = "") -> None:
    """Fail with the plug-in, its member and what is expected of it, and with what was found where that helps."""
    where = f"{type(plugin).__name__} (kind {plugin.kind!r}, {type(plugin).__module__})"
    assert holds, f"{where}: {member} must {expected}" + (f", not {found!r}" if found != "" else "")


def describes_itself(plugin: Plugin) -> None:
    for member in ("kind", "summary", "options"):
        where = f"{type(plugin).__name__} ({type(plugin).__module__})"
        assert hasattr(plugin, member), f"{where}: {member} must be there"
    kind, summary, unverified = plugin.kind, plugin.summary, plugin.unverified()
    plain = bool(re.fullmatch(r"[a-z][a-z0-9-]*", kind))
    must(plugin, plain, "kind", "be lower-case letters, digits and dashes", kind)
    must(plugin, 10 <= len(summary) <= 120, "summary", "have 10 to 120 characters", summary)
    must(plugin, _is_part_of_a_sentence(summary), "summary", "be one line without a full stop at its end", summary)
    must(plugin, bool(type(plugin).__doc__), "its class", "have a docstring")
    must(plugin, bool(plugin.options.__doc__), "options", f"have a docstring ({plugin.options.__name__})")
    part = _is_part_of_a_sentence(unverified)
    must(plugin, part, "unverified()", "be one line without a full stop at its end, or ''", unverified)


def _is_part_of_a_sentence(text: str) -> bool:
    return "\n" not in text and not text.endswith(".")


def names_its_programs(plugin: Plugin) -> None:
    programs, installed_by = plugin.programs, plugin.installed_by
    named = isinstance(programs, tuple) and all(isinstance(program, str) for program in programs)
    must(plugin, named, "programs", "be a tuple of names: which package has one is no plug-in's to know", programs)
    for program in programs:
        must(plugin, "/" not in program, "programs", "name programs as PATH finds them, without a folder", program)
    must(plugin, {*installed_by} <= {*programs}, "installed_by", "have none but its 'programs'", [*installed_by])
    commands = all(command and "\n" not in command for command in installed_by.values())
    must(plugin, commands, "installed_by", "give a command on one line for each", installed_by)


def has_strict_options(plugin: Plugin, given: Mapping[str, Any]) -> None:
    """``given``: the options without which none can be made."""
    must(plugin, issubclass(plugin.options, Options), "options", "derive from weighbridge.model.options.Options")
    options = plugin.options.model_validate(given)
    stored = json.loads(options.model_dump_json())
    context = {**option_models(), STORED: True}
    read = plugin.options.model_validate(stored, context=context)  # as a run that is continued reads them
    must(plugin, read == options, "options", f"be equal when read back from their JSON ({options!r})", read)
    try:
        plugin.options.model_validate({**given, "no such key": 1})
    except ValueError as error:
        must(plugin, "xtra" in str(error), "options", "refuse an unknown key as such", str(error))
    else:
        must(plugin, False, "options", "refuse an unknown key")
    schema = plugin.options.model_json_schema()
    json.dumps(schema)
    must(plugin, schema["additionalProperties"] is False, "options", "allow no unknown key in their JSON Schema")


def _is_of_its_kind(plugin: Plugin) -> None:
    """A study's ``kind`` chooses the model: it must take no other."""
    taken = get_args(plugin.options.model_fields["kind"].annotation)
    must(plugin, taken == (plugin.kind,), "options", f"have 'kind: Literal[{plugin.kind!r}]'", taken)


def answers(plugin: Plugin, ready: Readiness) -> None:
    must(plugin, isinstance(ready, Readiness), "ready()", "give a Readiness", ready)
    told = ready.ready or bool(ready.detail and ready.remedy)
    must(plugin, told, "ready()", "say what is missing (detail) and what helps (remedy) where not ready", ready)
    must(plugin, "\n" not in ready.detail + ready.remedy, "ready()", "say each on one line", ready)


def says_what_it_leaves(plugin: Plugin, folder: Path) -> None:
    """What is found is asked of a machine on which runs have kept nothing in ``folder``."""
    must(plugin, isinstance(plugin.cleanup, tuple), "cleanup", "be a tuple", plugin.cleanup)
    for kind in plugin.cleanup:
        must(plugin, isinstance(kind, Cleanup), "cleanup", "be of Cleanup", kind)
        for each in (kind, kind.elsewhere):
            made = each is None or isinstance(type(each)(), type(each))
            must(plugin, made, "cleanup", "be made anew without arguments, as the agent of an ssh host does", each)
        acts = any(getattr(type(kind), step) is not getattr(Cleanup, step) for step in ("end", "remove"))
        must(plugin, acts, "cleanup", "end or remove what they find", kind)
        left = [*kind.find(RunFolders(folder / "states", folder / "data"))]
        typed = all(isinstance(each, Leftover) and each.kind and each.name for each in left)
        must(plugin, typed, "cleanup", "find Leftover, each with its kind and name", left)
    _has_made_nothing(plugin, folder, "cleanup", "change nothing where they are looked for")


def holds_as_environment(environment: Environment, needed: Mapping[str, Any]) -> None:
    """``needed``: the options without which none can be made."""
    _fits_storage(environment)
    options = environment.options.model_validate(needed)
    read = environment.options.model_validate_json(options.model_dump_json())
    must(environment, read == options, "options", f"be equal when read back from their JSON ({options!r})", read)
    before = options.model_copy(deep=True)
    alone = [*environment.check(options, Needs(network=False))]
    must(environment, alone == [], "check()", "be empty for its defaults where no network is needed", alone)
    joined = [*environment.check(options, Needs(network=True))]
    must(environment, not _lines(*joined), "check()", "be sentences of one line", joined)
    must(environment, options == before, "check()", "change none of the options that it is given", options)
    _says_where_it_can_be(environment)
    _may_be_the_host(environment)
    _is_told_how_to_be_made_by_hand(environment, options)
    for given in ((), (options,), (options, Needs())):
        ready = environment.ready(*given)
        answers(environment, ready)
        must(environment, ready == environment.ready(*given), "ready()", "answer the same when asked twice", ready)
    nothing: Any = None
    opened = environment.open(options, nothing)
    must(
        environment, isinstance(opened, AbstractContextManager), "open()",
        "be a context manager, which looks at its request once it is entered", opened,
    )  # fmt: skip


def _says_where_it_can_be(environment: Environment) -> None:
    every = [kind.options.traits for kind in registry.hosts().values()]
    fits = any(not misplaced(environment, traits) for traits in (*every, HostTraits(managed=True)))
    must(environment, fits, "on_clusters", "be never, privileged or only", environment.on_clusters)


def _may_be_the_host(environment: Environment) -> None:
    for kind in registry.hosts().values():
        options = environment.as_host(kind.options.traits)
        own = options is None or isinstance(options, environment.options)
        must(environment, own, "as_host()", "be options of its own, or None", options)
        fits = options is None or not misplaced(environment, kind.options.traits)
        must(environment, fits, "as_host()", "be None where its sites cannot be on such hosts", options)
        again = environment.as_host(kind.options.traits)
        must(environment, options == again, "as_host()", "give the same when asked twice", options)


def _lines(*sentences: str) -> list[str]:
    return [sentence for sentence in sentences if "\n" in sentence]


def _is_told_how_to_be_made_by_hand(environment: Environment, options: Any) -> None:
    request = ByHandRequest(1, (PublishedPort("tcp", 5201, 5201),), frozenset({"server", "client"}))
    made = environment.by_hand(options, request)
    must(environment, made == environment.by_hand(options, request), "by_hand()", "give the same when asked twice")
    said = _lines(made.cannot, *made.first, *made.differs)
    must(environment, not said, "by_hand()", "say each sentence on one line", said)
    both = {*made.services} in (set(), {"server", "client"})
    must(environment, both, "by_hand()", "have a service for each role that is inside, or none", made.services)
    reached = bool(made.listen and made.address and made.client)
    must(environment, reached, "by_hand()", "say the addresses 'listen', 'address' and 'client'", made)


def _fits_storage(environment: Environment) -> None:
    mounts = environment.mounts
    must(
        environment,
        mounts <= {*get_args(StorageMode)},
        "mounts",
        f"be among {', '.join(get_args(StorageMode))}",
        mounts,
    )
    derived = issubclass(environment.options, EnvironmentOptions)
    must(
        environment,
        derived == bool(mounts),
        "options",
        "derive from EnvironmentOptions if it has 'mounts', and only then",
    )
    if environment.storage:
        ways = registry.storage()[environment.storage].ways
        fits = bool({*ways} & mounts)
        must(environment, fits, "storage", f"get in by one of its 'mounts' ({', '.join(mounts)})", ways)


def holds_as_storage(storage: Storage, given: Mapping[str, Any], folder: Path) -> None:
    must(storage, issubclass(storage.options, StorageOptions), "options", "derive from StorageOptions")
    _is_of_its_kind(storage)
    options = storage.options.model_validate(given)
    durability, ways = storage.durability(options), get_args(StorageMode)
    must(storage, {*storage.ways} <= {*ways} and bool(storage.ways), "ways", f"be of {', '.join(ways)}", storage.ways)
    must(storage, durability in get_args(Durability), "durability()", f"be of {get_args(Durability)}", durability)
    used = any({*storage.ways} & environment.mounts for environment in registry.environments().values())
    must(storage, used, "ways", "be among the 'mounts' of an environment", storage.ways)
    every = registry.storage()
    others = {*every, *(name for other in every.values() if other is not storage for name in other.aliases)}
    must(storage, not {*storage.aliases} & others, "aliases", "be of no other storage", {*storage.aliases} & others)
    answers(storage, storage.ready())
    answers(storage, storage.ready(options))
    with ExitStack() as stack:
        run = RunContext(RunId("0123456789ab"), folder, folder, stack)
        with registry.hosts()["local"].open("a", None, run, ()) as host:
            opened = storage.open(options, MountRequest(run, host, SafeName("site")))
            must(storage, isinstance(opened, AbstractContextManager), "open()", "be a context manager", opened)
    _has_made_nothing(storage, folder, "open()", "do nothing before it is entered")


def _has_made_nothing(plugin: Plugin, folder: Path, member: str, expected: str) -> None:
    made = [path.name for path in folder.iterdir()]
    must(plugin, not made, member, f"{expected}: it made {made}")


def holds_as_source(source: UserlandSource, given: Mapping[str, Any], cache: Path) -> None:
    must(source, issubclass(source.options, SourceOptions), "options", "derive from SourceOptions")
    _is_of_its_kind(source)
    options, spec = source.options.model_validate(given), UserlandSpec.of(["iperf3"])
    recipe = source.recipe(options, spec)
    either = bool(recipe.cannot) != bool(recipe.base)
    must(source, either, "recipe()", "have a 'base', or say why not in 'cannot'", recipe)
    lacking = source.cannot_build(options, spec, cache)
    told = lacking is None or all(lacking)
    must(source, told, "cannot_build()", "be None, or what is missing and what helps", lacking)
    try:
        key = source.key(options, spec)
    except Unavailable as why:
        must(source, "\n" not in str(why), "key()", "say on one line why there is none", str(why))
    else:
        must(source, bool(re.fullmatch(r"[0-9a-f]{16}", key)), "key()", "be 16 hexadecimal digits", key)
        must(source, key == source.key(options, spec), "key()", "be the same when asked twice", key)
    _has_made_nothing(source, cache, "key(), cannot_build() and recipe()", "build nothing")


def holds_as_layers(owner: str, layers: Layers) -> None:
    """Those of an open host or site: what is shown beside each of its figures, and kept with the run."""
    typed = type(layers) is tuple and all(type(layer) is Layer for layer in layers)
    assert typed, f"{owner}: layers must be a tuple of weighbridge.model.isolation.Layer, not {layers!r}"
    for layer in layers:
        named = re.fullmatch(r"[A-Za-z][A-Za-z0-9 ,.+-]{1,39}", layer.name)
        assert named, f"{owner}: a layer's name, shown in tables and legends, must be 2 to 40 plain letters: {layer}"
        assert type(layer.emulated) is bool, f"{owner}: a layer's 'emulated' must be True or False: {layer}"
    read = layers_of(layers_json(SiteLayers("a", layers))).layers
    assert read == layers, f"{owner}: layers must be equal when read back from the run: {read!r}, not {layers!r}"


def holds_as_host(plugin: HostKind, given: Mapping[str, Any], folder: Path) -> None:
    must(plugin, issubclass(plugin.options, HostOptions), "options", "derive from HostOptions")
    _is_of_its_kind(plugin)
    options = plugin.options.model_validate({"kind": plugin.kind, **given})
    traits = options.traits
    must(plugin, isinstance(traits, HostTraits), "options.traits", "be HostTraits", traits)
    here = traits.here or not traits.this_machine
    must(plugin, here, "options.traits", "be 'here' where it is 'this_machine'", traits)
    networks = options.networks
    named = isinstance(networks, Set) and all(isinstance(name, str) and name for name in networks)
    must(plugin, named and bool(networks), "options.networks", "be a set of names, with at least one", networks)
    must(plugin, options.reaches(options), "options.networks", "let two hosts with these options reach one another")
    described = bool(options.description) and "\n" not in options.description
    must(plugin, described, "options.description", "be one line", options.description)
    answers(plugin, plugin.ready())
    answers(plugin, plugin.ready(options))
    with ExitStack() as stack:
        run = RunContext(RunId("0123456789ab"), folder, folder, stack)
        opened = plugin.open("a", options, run, (options,))
        must(plugin, isinstance(opened, AbstractContextManager), "open()", "be a context manager", opened)
    _has_made_nothing(plugin, folder, "open()", "do nothing before it is entered")


def holds_as_provider(provider: MachineProvider, given: Mapping[str, Any]) -> None:
    """Of machines that a scheduler chooses nothing is asked that only the driver may ask, but for its hosts."""
    must(provider, issubclass(provider.options, ProviderOptions), "options", "derive from ProviderOptions")
    _is_of_its_kind(provider)
    options = provider.options.model_validate(given)
    described = bool(options.description) and "\n" not in options.description
    must(provider, described, "options.description", "be one line", options.description)
    other = provider.named_by("no-such-provider")
    must(provider, other is None, "named_by()", "be None for a word that names none of its kind", other)
    answers(provider, provider.ready())
    answers(provider, provider.ready(options))
    try:
        machines = provider.machines(options)
    except Unavailable as why:  # nobody answers here
        must(provider, "\n" not in str(why), "machines()", "say on one line why there are none", str(why))
        machines = None
    if machines is not None:
        named = len({*machines}) == len(machines) > 0 and all(re.fullmatch(MACHINE_NAME, name) for name in machines)
        must(provider, named, "machines()", "be names of folders, each once", machines)
        counted = provider.count(options)
        must(provider, counted == len(machines), "count()", "be as many as machines()", counted)
    names = (machines or ("n1", "n2"))[:2]
    models = {kind: host.options for kind, host in registry.hosts().items()}
    for hosts in (provider.hosts(options, names[:1]), provider.hosts(options, names)):
        fits = all(host.get("kind") in models and models[host["kind"]].model_validate(host) for host in hosts)
        must(provider, fits, "hosts()", "be hosts as a study says them", hosts)
    alone = provider.host(options, names[0])
    fits = alone.get("kind") in models and bool(models[alone["kind"]].model_validate(alone))
    must(provider, fits, "host()", "be a host as a study says it", alone)
    argv = ("weighbridge", "run")
    command = provider.command(options, names, argv)
    must(provider, command[-len(argv) :] == argv, "command()", "end with the command that it starts", command)
    state = provider.state(options, "no such job")
    unknown = isinstance(state, DriverState) and state.state in ("ended", "unknown")
    must(provider, unknown, "state()", "be 'ended' or 'unknown' of a job that is none", state)


# -- mechanisms -----------------------------------------------------------------------------------


def keeps_the_contract_of_mechanisms(mechanism: Mechanism, subjects: Sequence[Subject]) -> None:
    """It says what it is, knows which it needs off, and what is off cannot be switched off again."""
    every = registry.mechanisms()
    for member in ("title", "switched", "remedy", "source"):
        text = getattr(mechanism, member)
        must(mechanism, bool(text) and text == text.strip() and not text.endswith("."), member, "be a phrase", text)
    must(mechanism, {*mechanism.off_with} <= {*every} - {mechanism.kind}, "off_with", "name other mechanisms")
    if mechanism.proof is not None and mechanism.proof.off is not None:
        re.compile(mechanism.proof.off)
    switched, refusals = [], []
    for subject in subjects:
        try:
            arm = mechanism.off(subject)
        except ValueError as why:
            refusals.append(str(why))
            continue
        if arm is not None:
            switched.append((subject, arm))
    what = "switch something off in one of the environments of this test, or say why not"
    must(mechanism, bool(switched) or any(refusals), "off", what)
    for subject, arm in switched:
        must(mechanism, arm != subject.arm, "off", "give another environment than it was given")
        must(mechanism, arm.name == subject.arm.name, "off", "leave the name as it is")
        must(mechanism, mechanism.off(subject.after(arm)) is None, "off", "give None where it is off")
