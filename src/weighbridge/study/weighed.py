"""A command line as a study: what `weighbridge weigh` runs, and writes down with ``--save``."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weighbridge.errors import StudyError
from weighbridge.model.choices import CpuIdle
from weighbridge.model.host import THIS_MACHINE, HostTraits
from weighbridge.model.spelling import nearest
from weighbridge.model.stored_study import BASE, ENTRY, HEAD, WEIGHED
from weighbridge.registry import bare_host_name, environment_named, weighed_in
from weighbridge.registry import environments as environments_by_kind
from weighbridge.registry import hosts as hosts_by_kind
from weighbridge.study.source import plain, written

USUAL = (("docker",), ("podman-rootless",), ("netns",), ("bubblewrap",))
"""The default environments for a program, by the names of ``--in``. The first available choice is used."""
USUAL_OF_SERVERS = (("netns", "bridge"), ("bridge",), ("netns",), ("podman-published",), ("bubblewrap",))
USUAL_IN_CLUSTER, USUAL_OF_SERVERS_IN_CLUSTER = ("pod",), ("pod", "service")
"""The default environments in a cluster."""
_WAYS_IN_CLUSTER = {
    "pod": "the pods' network", "service": "a Service", "nodeport": "a node port", "policy": "a NetworkPolicy",
}  # fmt: skip
WITHOUT_ENGINE = frozenset({"netns", "bubblewrap"})
"""Default environments without a container engine, which do not show the cost of one."""
_LADDERS = (("netns", "bridge", "published"), ("pod", "service"))
"""Environments that each add one step: leaving the loopback interface, Docker's bridge, a published port."""
_OF_A_SERVER = ("address", "port", "data_port", "listen")
_QUESTION = 200
_PROGRAMS = 100
_LONGEST_NAME = 40
_SCRIPT = "-c"
"""The option of a shell or an interpreter that precedes the program itself."""
_QUOTED = frozenset(" \t\n'\"\\")
"""Characters for which a word is quoted in text for people."""


BEFORE, AFTER = "before", "after"
"""The names of the environments if a program is compared with an earlier version."""
_COMMAND = "command"
_WRAPPER = "wrapper"


@dataclass(frozen=True, slots=True)
class Earlier:
    """The earlier version in a comparison of two programs. None means the same as for the other program."""

    userland: Mapping[str, Any] | None = None
    command: Sequence[str] | None = None
    server: str | None = None


@dataclass(frozen=True, slots=True)
class Weighed:
    """A program to be weighed. ``command`` is an argument list, or one string for a shell.

    With a ``server``, the command is its client, which is outside of the environments. ``userland`` is the root
    filesystem, as written in a study. ``within`` is a time and ``target`` a share; ``blocks`` replaces both.
    """

    command: Sequence[str]
    userland: Mapping[str, Any]
    server: str | Sequence[str] | None = None
    """A text with placeholders, or words without placeholders."""
    server_env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for the server only."""
    companions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Supporting services, as written in a study."""
    remark: str = ""
    """A comment for readers of the study, in one line."""
    client_userland: Mapping[str, Any] | None = None
    """The root filesystem of the server's client, if it is another one."""
    port: int | None = None
    """The only port on which the server can listen, or None if the command line sets the port."""
    inside: Sequence[str] = ()
    """The names of the environments, by the names of ``--in`` or in ``wrappers``."""
    wrappers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Command lines that start the program in environments of their own, by name."""
    hosts: Sequence[Mapping[str, Any]] = ()
    """The cluster nodes of the client and the server, as written in a study. Empty means this machine."""
    packages: Sequence[str] = ()
    """Debian packages that contain its programs, if they are not from this machine or an image."""
    earlier: Earlier | None = None
    """The earlier version, measured in the one environment in ``inside``. None compares with the host itself."""
    labels: tuple[str, str] = (BEFORE, AFTER)
    """The names of the two versions, the earlier one first."""
    commits: tuple[str, str] | None = None
    """The commits of the two versions if each is a tree of a repository. Both are then measured in the host itself
    and in every environment in ``inside``."""
    commands: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Several programs by name; ``command`` is the first of them. Empty for a single program."""
    shell: bool = False
    parameters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    """Commands that are not measured: ``setup``, ``prepare``, ``check``, ``cleanup``."""
    further: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the workload `command`, as written in a study."""
    resources: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a Compose service. Every environment gets the settings that it supports."""
    shm_size: str | None = None
    """The size of /dev/shm in every environment. None means the size in the settings, or the default of each kind."""
    target: str = "2%"
    within: str = "2min"
    blocks: int | None = None
    explain: bool = False
    """Whether to explain the cost."""
    placebo: bool = False
    """Whether to measure the explained environments once more with nothing switched."""
    trace: str = ""
    """The tracer that watches the explained environments, or ""."""
    cpu_idle: CpuIdle = "auto"


def study_text(weighed: Weighed) -> str:
    """Return the study as YAML. Raises StudyError for an unknown or unusable environment."""
    environments = _all_environments(weighed)
    own_size = {} if weighed.shm_size is None else {"shm_size": weighed.shm_size}
    for entry in environments.values():
        entry.update({**written_out(settings_of(weighed.settings, entry["kind"])), **own_size})
    study: dict[str, Any] = {
        "study": _name(weighed),
        "question": plain(_question(weighed, [*environments]), _QUESTION),
        **_placed(weighed),
        "userland": dict(weighed.userland),
        "client_userland": dict(weighed.client_userland or {}),
        "resources": dict(weighed.resources),
        "companions": {name: written_out(each) for name, each in weighed.companions.items()},
        "baseline": next(iter(environments)),
        "environments": environments,
        "workloads": {**_programs(weighed), **_entry(weighed, environments)},
        "repetitions": _repetitions(weighed),
        "cpu_idle": weighed.cpu_idle,
        "ladder": _ladder(environments, _baseline(weighed)) if weighed.earlier is None else [],
        "explain": weighed.explain,
        "placebo": weighed.placebo,
        "trace": weighed.trace or False,
    }
    remark = f"# {plain(weighed.remark)}\n" if weighed.remark else ""
    return remark + written({key: value for key, value in study.items() if value not in ({}, [], False)})


def _question(weighed: Weighed, environments: Sequence[str]) -> str:
    command = _words(weighed.command)
    if weighed.commits is not None:
        return _question_of_commits(weighed, *weighed.commits)
    if other := _earlier_words(weighed):
        before, after = weighed.labels
        begin, than = ("What does", "cost against") if weighed.metrics else ("How much slower is", "than")
        return f"{begin} {_quoted(command)} ({after}) {than} {_quoted(other)} ({before})?"
    question = _question_in_cluster(environments) if weighed.hosts else "What does isolation cost"
    if weighed.earlier is not None:
        before, after = weighed.labels
        question = f"What does {after} cost against {before}"
    if weighed.server is not None:
        words = weighed.server if isinstance(weighed.server, str) else shlex.join(weighed.server)
        return f"{question}, for the server: {words}"
    return f"{question}: {', '.join(weighed.commands) or command}"


def _words(command: Sequence[str]) -> str:
    """Return a command for people, with quotes only if they are needed."""
    return " ".join(each if each and not set(each) & _QUOTED else shlex.quote(each) for each in command)


def _question_of_commits(weighed: Weighed, base: str, head: str) -> str:
    """Return the question about two versions of one program or of several."""
    several = len(weighed.commands) > 1
    begin, than = f"How much slower {'are' if several else 'is'}", "than"
    if weighed.metrics:
        begin, than = f"What {'do' if several else 'does'}", "cost against"
    programs = plain(", ".join(weighed.commands) or _quoted(_words(weighed.command)), _PROGRAMS)
    return f"{begin} {programs} at {HEAD} {head} {than} at {BASE} {base}?"


def _quoted(words: str) -> str:
    return words if words.startswith("'") else f"'{words}'"


def _earlier_words(weighed: Weighed) -> str:
    """Return the earlier server or program for people, or "" if there is none or if an image defines it."""
    earlier = weighed.earlier
    if earlier is None or earlier.userland is not None:
        return ""
    return (earlier.server or "") if weighed.server is not None else _words(earlier.command or ())


def _question_in_cluster(environments: Sequence[str]) -> str:
    """Return the question of a study in a cluster. Its baseline is also a pod."""
    others = [_WAYS_IN_CLUSTER.get(name, name) for name in environments[1:]]
    listed = " and ".join(filter(None, (", ".join(others[:-1]), others[-1])))
    return f"What {'does' if len(others) == 1 else 'do'} {listed} cost, against a pod with its node's network"


def _traits(weighed: Weighed) -> HostTraits:
    return hosts_by_kind()[weighed.hosts[0]["kind"]].options.traits if weighed.hosts else THIS_MACHINE


def _baseline(weighed: Weighed) -> str:
    """Return the name of the environment that is the host itself."""
    return bare_host_name(_traits(weighed))


def _placed(weighed: Weighed) -> dict[str, Any]:
    """Return the hosts and the placement of roles in a cluster. Both roles are then inside of the environments."""
    hosts = {name: written_out(host) for name, host in zip("ab", weighed.hosts, strict=False)}
    if not hosts or weighed.server is None:
        return {"hosts": hosts}
    return {
        "hosts": hosts,
        "placement": {"client": "a", "server": [*hosts][-1]},
        "inside": ["server", "client"],
    }


def settings_of(settings: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the settings of a service that a kind of environment supports. An unknown kind supports none."""
    plugin = environments_by_kind().get(kind)
    return {name: value for name, value in settings.items() if plugin is not None and name in plugin.takes}


def _name(weighed: Weighed) -> str:
    """Return the study's name, made of the words of the server or, without a server, of the program."""
    server = weighed.server or ()
    words = (server.split() if isinstance(server, str) else server) or " ".join(weighed.command).split()
    words = [words[0], *words[2:4]] if words[1:2] == [_SCRIPT] else words[:2]
    names = [re.sub(r"[^A-Za-z0-9_.]+", "-", word.rpartition("/")[2]).strip("-.") for word in words]
    parts = [name for name, word in zip(names, words, strict=False) if name and not word.startswith(("-", "{"))]
    return "-".join((WEIGHED, *parts))[:_LONGEST_NAME].rstrip("-.")


def literal(word: str) -> str:
    """Return a word of a `command` with all braces escaped, so that it has no placeholders."""
    return word.replace("{", "{{").replace("}", "}}")


def written_out(value: Any) -> Any:
    """Return a value with plain dicts and lists in the place of other mappings and sequences, for YAML."""
    if isinstance(value, Mapping):
        return {str(key): written_out(each) for key, each in value.items()}
    return [written_out(each) for each in value] if isinstance(value, list | tuple) else value


def _all_environments(weighed: Weighed) -> dict[str, dict[str, Any]]:
    if weighed.earlier is None:
        return _environments(weighed)
    return (_both_versions if weighed.commits is None else _both_trees)(weighed, weighed.earlier)


def _environments(weighed: Weighed) -> dict[str, dict[str, Any]]:
    names = weighed.inside or (USUAL_OF_SERVERS if weighed.server else USUAL)[0]
    traits, host = _traits(weighed), _baseline(weighed)
    if {*names} == {host}:
        raise StudyError(f"--in {host}: {host} is always measured; name another environment, or use --against")
    return _known(weighed, (host, *names), traits)


def _known(weighed: Weighed, names: Sequence[str], traits: HostTraits) -> dict[str, dict[str, Any]]:
    """Return the environments with these names. Raises StudyError for a name that no environment has."""
    chosen = {name: _chosen(weighed, name, traits) for name in names}
    for name in (each for each, environment in chosen.items() if environment is None):
        choices = weighed_in(traits)
        hint = nearest(name, choices) or f". Known names: {', '.join(choices)}"
        where = " in a cluster" if weighed.hosts else ""
        raise StudyError(f"--in: there is no '{plain(name, 60)}'{where}{hint}")
    return {name: dict(environment or {}) for name, environment in chosen.items()}


def _chosen(weighed: Weighed, name: str, traits: HostTraits) -> Mapping[str, Any] | None:
    if (words := weighed.wrappers.get(name)) is not None:
        return {"kind": _WRAPPER, "command": [*words]}
    return environment_named(name, traits)


def _both_versions(weighed: Weighed, earlier: Earlier) -> dict[str, dict[str, Any]]:
    """Return one environment twice: with the earlier version, and with the program."""
    packed = weighed.server is not None or earlier.userland is not None
    usual = USUAL_IN_CLUSTER[0] if weighed.hosts else "bridge" if packed else _baseline(weighed)
    names = [*dict.fromkeys(weighed.inside or (usual,))]
    if len(names) != 1:
        raise StudyError(f"--against compares in one environment: choose one of {', '.join(names)}")
    traits = _traits(weighed)
    if (chosen := _chosen(weighed, names[0], traits)) is None:
        raise StudyError(f"--in: there is no '{plain(names[0], 60)}'{nearest(names[0], weighed_in(traits))}")
    written, own = _Braces(weighed), {}
    if earlier.command is not None:
        own["run" if weighed.server is None else "client"] = written.line(earlier.command)
    if earlier.server is not None:
        own["server"] = written(earlier.server)
    before = {
        **chosen,
        **({} if earlier.userland is None else {"userland": dict(earlier.userland)}),
        **({"workloads": {_COMMAND: own}} if own else {}),
    }
    return dict(zip(weighed.labels, (before, dict(chosen)), strict=True))


def _both_trees(weighed: Weighed, earlier: Earlier) -> dict[str, dict[str, Any]]:
    """Return the host itself and each further environment twice: with the tree of the base, and with the head's."""
    host = _baseline(weighed)
    known = _known(weighed, (host, *weighed.inside), _traits(weighed))
    return {
        version if name == host else f"{version}-{name}": {
            **written_out(environment),  # no two share a mapping
            **({"userland": written_out(earlier.userland)} if version == BASE else {}),
        }
        for name, environment in known.items()
        for version in (BASE, HEAD)
    }


class _Braces:
    """Writes words with the placeholders of a study. All other braces belong to the program: {print $1}."""

    def __init__(self, weighed: Weighed) -> None:
        names = (*weighed.parameters, *(_OF_A_SERVER if weighed.server is not None else ()))
        self._placeholders = "|".join(re.escape(f"{{{name}}}") for name in names) or "(?!)"
        self._shell = weighed.shell

    def __call__(self, text: str) -> str:
        parts = re.split(f"({self._placeholders})", text)
        return "".join(part if at % 2 else literal(part) for at, part in enumerate(parts))

    def line(self, words: Sequence[str]) -> str | list[str]:
        """Return a program with its arguments."""
        written = [self(word) for word in words]
        return " ".join(written) if self._shell else written


def _workload(weighed: Weighed) -> dict[str, Any]:
    with_placeholders = _Braces(weighed)
    words = with_placeholders.line(weighed.command)
    workload: dict[str, Any] = {"kind": "command"}
    if weighed.server is None:
        workload |= {"run": words}
    elif isinstance(weighed.server, str):
        workload |= {"server": with_placeholders(weighed.server), "client": words}
    else:
        workload |= {"server": [literal(word) for word in weighed.server], "client": words}
    workload |= {"server_env": dict(weighed.server_env)} if weighed.server_env else {}
    workload |= {"port": weighed.port} if weighed.port is not None else {}
    workload |= {"shell": True} if weighed.shell else {}
    workload |= {"packages": [*weighed.packages]} if weighed.packages else {}
    workload |= {key: with_placeholders(text) for key, text in weighed.unmeasured.items()}
    parameters = {name: list(values) if len(values) > 1 else values[0] for name, values in weighed.parameters.items()}
    workload |= {"parameters": parameters} if parameters else {}
    workload |= (
        {"metrics": {name: dict(metric) for name, metric in weighed.metrics.items()}} if weighed.metrics else {}
    )
    return workload | dict(weighed.further)


def _programs(weighed: Weighed) -> dict[str, Any]:
    """Return the workload of each program."""
    if not weighed.commands:
        return {_COMMAND: _workload(weighed)}
    return {name: _workload(replace(weighed, command=words)) for name, words in weighed.commands.items()}


def _entry(weighed: Weighed, environments: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the workload that starts a trivial command, if a program is weighed in a sandbox: a second cost."""
    sandboxed = any(entry["kind"] == _WRAPPER for entry in environments.values())
    return {ENTRY: {"kind": "boot"}} if sandboxed and weighed.server is None and weighed.earlier is None else {}


def _repetitions(weighed: Weighed) -> dict[str, Any]:
    if weighed.blocks is not None:
        return {"rounds": weighed.blocks}
    return {"target": weighed.target, "within": weighed.within}


def _ladder(environments: Mapping[str, Any], baseline: str) -> list[str]:
    ladders = ([name for name in ladder if name in environments] for ladder in _LADDERS)
    return next(([baseline, *rungs] for rungs in ladders if len(rungs) > 1), [])
