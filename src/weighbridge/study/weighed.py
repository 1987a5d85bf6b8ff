"""A command line as a study: what `weighbridge weigh` runs, and writes down with ``--save``."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weighbridge.errors import StudyError
from weighbridge.model.choices import CpuIdle
from weighbridge.model.host import THIS_MACHINE, HostTraits
from weighbridge.model.spelling import nearest
from weighbridge.model.study import WEIGHED
from weighbridge.registry import environments as environments_by_kind
from weighbridge.registry import hosts as hosts_by_kind
from weighbridge.registry import itself_in, weighed_in
from weighbridge.study.source import plain, written

USUAL = (("docker",), ("podman-rootless",), ("netns",), ("bubblewrap",))
"""What a program is weighed in where nobody says, by the names of ``--in``: the first of these that can be had."""
USUAL_OF_SERVERS = (("netns", "bridge"), ("bridge",), ("netns",), ("podman-published",), ("bubblewrap",))
USUAL_IN_CLUSTER, USUAL_OF_SERVERS_IN_CLUSTER = ("pod",), ("pod", "service")
"""The same in a cluster."""
_WAYS_IN_CLUSTER = {
    "pod": "the pods' network", "service": "a Service", "nodeport": "a node port", "policy": "a NetworkPolicy",
}  # fmt: skip
WITHOUT_ENGINE = frozenset({"netns", "bubblewrap"})
"""Those of them that need no container engine, and do not show what one adds."""
_LADDERS = (("netns", "bridge", "published"), ("pod", "service"))
"""Each adds one step to the one before: out of the loopback interface, Docker's bridge, a published port."""
_OF_A_SERVER = ("address", "port", "data_port", "listen")
_QUESTION = 200
_LONGEST_NAME = 40
_SCRIPT = "-c"
"""What a shell, or an interpreter, has before the program itself."""
_QUOTED = frozenset(" \t\n'\"\\")
"""What a word is quoted for where people read it."""


BEFORE, AFTER = "before", "after"
"""The environments of a program that is weighed against an older one of its kind."""
_COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Earlier:
    """What another program is weighed against in one and the same environment; None: as the other has it."""

    userland: Mapping[str, Any] | None = None
    command: Sequence[str] | None = None
    server: str | None = None


@dataclass(frozen=True, slots=True)
class Weighed:
    """A program to be weighed. ``command`` is an argument list, or one string where a shell is to read it.

    With a ``server`` the command is its client, which is outside of the environments. ``userland``: where they come
    from, as a study says it. ``within`` is a time as a study says it, ``target`` a share; ``blocks`` stands in the
    place of both.
    """

    command: Sequence[str]
    userland: Mapping[str, Any]
    server: str | Sequence[str] | None = None
    """A text with placeholders, or words that have none."""
    server_env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the server alone."""
    companions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Services that stay where they are, as a study says them."""
    remark: str = ""
    """What a reader of the study has to know, in one line."""
    client_userland: Mapping[str, Any] | None = None
    """Where the client of a server comes from, if from elsewhere."""
    port: int | None = None
    """The only port on which the server can listen; None: it is told one."""
    inside: Sequence[str] = ()
    hosts: Sequence[Mapping[str, Any]] = ()
    """The nodes of a cluster, as a study says them: of the client, and of the server; () is this machine."""
    packages: Sequence[str] = ()
    """Debian packages that have its programs, where these are not this machine's or an image's."""
    earlier: Earlier | None = None
    """What it is compared with in the one environment that is in ``inside``; None: with itself natively."""
    labels: tuple[str, str] = (BEFORE, AFTER)
    """What the two that are compared so are called: the earlier one first."""
    shell: bool = False
    parameters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)
    """Commands that are not measured: ``setup``, ``prepare``, ``check``, ``cleanup``."""
    further: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the workload `command`, as a study says them."""
    resources: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What a Compose file's service is set to: every environment has of it what it can be given."""
    shm_size: str | None = None
    """What /dev/shm holds in every environment; None: what each kind gives, or the settings."""
    target: str = "2%"
    within: str = "2min"
    blocks: int | None = None
    explain: bool = False
    """Whether to say why it costs that, too."""
    trace: str = ""
    """A tracer that is to watch what is explained; "": none."""
    cpu_idle: CpuIdle = "auto"


def study_text(weighed: Weighed) -> str:
    """Return the study as YAML. Raises StudyError for what nothing can be weighed in."""
    environments = _environments(weighed) if weighed.earlier is None else _two(weighed, weighed.earlier)
    own_size = {} if weighed.shm_size is None else {"shm_size": weighed.shm_size}
    for entry in environments.values():
        entry.update({**written_out(settings_of(weighed.settings, entry["kind"])), **own_size})
    command = _words(weighed.command)
    question = _question_in_cluster([*environments]) if weighed.hosts else "What does isolation cost"
    if weighed.earlier is not None:
        before, after = weighed.labels
        question = f"What does {after} cost against {before}"
    if weighed.server is not None:
        words = weighed.server if isinstance(weighed.server, str) else shlex.join(weighed.server)
        question, command = f"{question}, for the server", words
    question = f"{question}: {command}"
    if other := _earlier_words(weighed):
        before, after = weighed.labels
        begin, than = ("What does", "cost against") if weighed.metrics else ("How much slower is", "than")
        question = f"{begin} {_quoted(command)} ({after}) {than} {_quoted(other)} ({before})?"
    study: dict[str, Any] = {
        "study": _name(weighed),
        "question": plain(question, _QUESTION),
        **_placed(weighed),
        "userland": dict(weighed.userland),
        "client_userland": dict(weighed.client_userland or {}),
        "resources": dict(weighed.resources),
        "companions": {name: written_out(each) for name, each in weighed.companions.items()},
        "baseline": next(iter(environments)),
        "environments": environments,
        "workloads": {_COMMAND: _workload(weighed)},
        "repetitions": _repetitions(weighed),
        "cpu_idle": weighed.cpu_idle,
        "ladder": _ladder(environments, _baseline(weighed)) if weighed.earlier is None else [],
        "explain": weighed.explain,
        "trace": weighed.trace or False,
    }
    remark = f"# {plain(weighed.remark)}\n" if weighed.remark else ""
    return remark + written({key: value for key, value in study.items() if value not in ({}, [], False)})


def _words(command: Sequence[str]) -> str:
    """A command as people read it: quotes only where they are needed."""
    return " ".join(each if each and not set(each) & _QUOTED else shlex.quote(each) for each in command)


def _quoted(words: str) -> str:
    return words if words.startswith("'") else f"'{words}'"


def _earlier_words(weighed: Weighed) -> str:
    """The earlier server or program as people read it; empty without one, and if it is the one of an image."""
    earlier = weighed.earlier
    if earlier is None or earlier.userland is not None:
        return ""
    return (earlier.server or "") if weighed.server is not None else _words(earlier.command or ())


def _question_in_cluster(environments: Sequence[str]) -> str:
    """What is compared there: its baseline is a pod, too."""
    others = [_WAYS_IN_CLUSTER.get(name, name) for name in environments[1:]]
    listed = " and ".join(filter(None, (", ".join(others[:-1]), others[-1])))
    return f"What {'does' if len(others) == 1 else 'do'} {listed} cost, against a pod with its node's network"


def _traits(weighed: Weighed) -> HostTraits:
    return hosts_by_kind()[weighed.hosts[0]["kind"]].options.traits if weighed.hosts else THIS_MACHINE


def _baseline(weighed: Weighed) -> str:
    """The name of the environment that is the host itself."""
    return itself_in(_traits(weighed))


def _placed(weighed: Weighed) -> dict[str, Any]:
    """On which hosts the roles are, where that is not this machine; both are in the environments then."""
    hosts = {name: written_out(host) for name, host in zip("ab", weighed.hosts, strict=False)}
    if not hosts or weighed.server is None:
        return {"hosts": hosts}
    return {
        "hosts": hosts,
        "placement": {"client": "a", "server": [*hosts][-1]},
        "inside": ["server", "client"],
    }


def settings_of(settings: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return those of a service's settings that sites of environments of a kind can be given; {} of no known kind."""
    plugin = environments_by_kind().get(kind)
    return {name: value for name, value in settings.items() if plugin is not None and name in plugin.takes}


def _name(weighed: Weighed) -> str:
    """The study's name, made of the server's words where there is one, else the program's."""
    server = weighed.server or ()
    words = (server.split() if isinstance(server, str) else server) or " ".join(weighed.command).split()
    words = [words[0], *words[2:4]] if words[1:2] == [_SCRIPT] else words[:2]
    names = [re.sub(r"[^A-Za-z0-9_.]+", "-", word.rpartition("/")[2]).strip("-.") for word in words]
    parts = [name for name, word in zip(names, words, strict=False) if name and not word.startswith(("-", "{"))]
    return "-".join((WEIGHED, *parts))[:_LONGEST_NAME].rstrip("-.")


def literal(word: str) -> str:
    """A word of a `command` in which no brace is a placeholder's."""
    return word.replace("{", "{{").replace("}", "}}")


def written_out(value: Any) -> Any:
    """Return a value with plain dicts and lists in the place of other mappings and sequences, for YAML."""
    if isinstance(value, Mapping):
        return {str(key): written_out(each) for key, each in value.items()}
    return [written_out(each) for each in value] if isinstance(value, list | tuple) else value


def _environments(weighed: Weighed) -> dict[str, dict[str, Any]]:
    names = weighed.inside or (USUAL_OF_SERVERS if weighed.server else USUAL)[0]
    choices, host = weighed_in(_traits(weighed)), _baseline(weighed)
    for name in names:
        if name not in choices:
            hint = nearest(name, choices) or f". Known names: {', '.join(choices)}"
            where = " in a cluster" if weighed.hosts else ""
            raise StudyError(f"--in: there is no '{plain(name, 60)}'{where}{hint}")
    if {*names} == {host}:
        raise StudyError(f"--in {host}: {host} is always measured; name another environment, or use --against")
    return {name: dict(choices[name]) for name in (host, *names)}


def _two(weighed: Weighed, earlier: Earlier) -> dict[str, dict[str, Any]]:
    """One environment twice: with what the program is weighed against, and with the program."""
    packed = weighed.server is not None or earlier.userland is not None
    usual = USUAL_IN_CLUSTER[0] if weighed.hosts else "bridge" if packed else _baseline(weighed)
    names = [*dict.fromkeys(weighed.inside or (usual,))]
    if len(names) != 1:
        raise StudyError(f"--against compares in one environment: choose one of {', '.join(names)}")
    choices = weighed_in(_traits(weighed))
    if names[0] not in choices:
        raise StudyError(f"--in: there is no '{plain(names[0], 60)}'{nearest(names[0], choices)}")
    written, own = _Braces(weighed), {}
    if earlier.command is not None:
        own["run" if weighed.server is None else "client"] = written.line(earlier.command)
    if earlier.server is not None:
        own["server"] = written(earlier.server)
    before = {
        **choices[names[0]],
        **({} if earlier.userland is None else {"userland": dict(earlier.userland)}),
        **({"workloads": {_COMMAND: own}} if own else {}),
    }
    return dict(zip(weighed.labels, (before, dict(choices[names[0]])), strict=True))


class _Braces:
    """Writes words with the placeholders that a study has; all other braces are the program's own: {print $1}."""

    def __init__(self, weighed: Weighed) -> None:
        names = (*weighed.parameters, *(_OF_A_SERVER if weighed.server is not None else ()))
        self._placeholders = "|".join(re.escape(f"{{{name}}}") for name in names) or "(?!)"
        self._shell = weighed.shell

    def __call__(self, text: str) -> str:
        parts = re.split(f"({self._placeholders})", text)
        return "".join(part if at % 2 else literal(part) for at, part in enumerate(parts))

    def line(self, words: Sequence[str]) -> str | list[str]:
        """A program with its arguments."""
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
    workload |= {key: with_placeholders(text) for key, text in weighed.beside.items()}
    parameters = {name: list(values) if len(values) > 1 else values[0] for name, values in weighed.parameters.items()}
    workload |= {"parameters": parameters} if parameters else {}
    workload |= (
        {"metrics": {name: dict(metric) for name, metric in weighed.metrics.items()}} if weighed.metrics else {}
    )
    return workload | dict(weighed.further)


def _repetitions(weighed: Weighed) -> dict[str, Any]:
    if weighed.blocks is not None:
        return {"rounds": weighed.blocks}
    return {"target": weighed.target, "within": weighed.within}


def _ladder(environments: Mapping[str, Any], baseline: str) -> list[str]:
    ladders = ([name for name in ladder if name in environments] for ladder in _LADDERS)
    return next(([baseline, *rungs] for rungs in ladders if len(rungs) > 1), [])
