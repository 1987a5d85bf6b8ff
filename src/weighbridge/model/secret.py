"""Secrets: values that a run uses, and that nothing stores or shows.

A study says ``${secret:NAME}`` where such a value belongs. Everything that is made of the study (the run, its report,
commands, messages) has this reference. Weighbridge puts the value in its place only when it starts the program that
needs it (`weighbridge.secret_values`).
"""

import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from hashlib import blake2b
from typing import Any, NewType
from urllib.parse import quote

SecretName = NewType("SecretName", str)
"""The name of a secret: a variable's name, or the place of its value in the study or Compose file."""

PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
"""Variables that `weigh` gives to every program and stores: they say where programs are and how they write."""
_NAME = r"[A-Za-z0-9_.~%-]{1,300}"
_REFERENCE = re.compile(rf"\$\{{secret:({_NAME})\}}")
_WRITTEN = re.compile(rf"\$\{{\{{?secret:({_NAME})\}}")
"""A reference in a text of a study, too: the words of a ``command`` have each brace twice."""
_LIKE_REFERENCE = re.compile(r"\$\{\{?secret:[^}]*\}{0,2}")
_LOOKS_SECRET = re.compile(
    r"password|passwd|passphrase|secret|token|credential|cookie|(?<!by)(?<!com)(?<!tres)pass(?:_|$)"
    r"|(?:^|_)(?:pwd|pw|o?auth|jwt|dsn|private)(?:_|$)|(?:^|_|api|access|private)keys?(?:_|$)"
)
_HAS_USER = re.compile(r"://[^/\s@]+@|^[^\s/:@]+:[^\s@]+@\w+\(")
"""A URL with a user (``https://TOKEN@host``), or the name of a database as Go programs write it."""
_HAS_PASSWORD = re.compile(r":\S*@")
"""Text such as ``//USER:PASSWORD@HOST``, whatever the characters of the password are."""
_ORDINARY = re.compile(r"[A-Za-z]?[a-z]{1,11}|[0-9]{1,8}|.{0,3}", re.DOTALL)
"""A value that also stands in studies without being a secret there: a word, a number, or anything very short."""
_PLACES = (
    ("userland", "env"), ("client_userland", "env"), ("environments", "*", "userland", "env"),
    ("environments", "*", "variables"), ("environments", "*", "workloads", "*", "server_env"),
    ("workloads", "*", "server_env"), ("companions", "*", "environment"),
)  # fmt: skip
"""The keys of a study that hold environment variables."""
_PARAMETERS = (("workloads", "*", "parameters"), ("environments", "*", "workloads", "*", "parameters"))
_SUPPORTING_SERVICE_WORDS = (
    ("companions", "*", "command"), ("companions", "*", "entrypoint"), ("companions", "*", "healthcheck", "test"),
)  # fmt: skip
_COMMANDS = tuple(
    (*place, key)
    for place in (("workloads", "*"), ("environments", "*", "workloads", "*"))
    for key in ("run", "server", "client", "setup", "cleanup", "prepare", "check")
)
"""The keys of a study that hold commands. A command has each brace twice."""
_WITH_REFERENCES = (*((*place, "*") for place in (*_PLACES, *_PARAMETERS)), *_SUPPORTING_SERVICE_WORDS)
_KEYS = {place[-1] for place in _PLACES}
_HIDDEN_KEYS = {*_KEYS, "prometheus", "url"}
"""The keys below which a message shows no value."""
_NOT_SHOWN = "(value not shown)"
_EQUAL_ONLY_HERE = secrets.token_bytes(32)
KeyPath = tuple[str, ...]


def secret_name(*parts: str) -> SecretName:
    """Return the name of a secret by its place, such as ``db.POSTGRES_PASSWORD``."""
    return SecretName(".".join(quote(part, safe="") for part in parts))


def variable_of(name: SecretName) -> str:
    """Return the environment variable from which the value of a secret is taken: the last part of its name."""
    return re.sub(r"\W", "_", name.rpartition(".")[2], flags=re.ASCII)


def variables_of(names: Iterable[SecretName]) -> list[str]:
    """Return the environment variables from which the values of secrets are taken, each once."""
    return [*dict.fromkeys(map(variable_of, names))]


def env_options(variables: Iterable[str]) -> str:
    """Return the options that give the values of variables to a study: ``--env TOKEN --env PASSWORD``."""
    return " ".join(f"--env {variable}" for variable in variables)


def reference(name: SecretName) -> str:
    """Return the text that stands for the value of a secret."""
    return f"${{secret:{name}}}"


def secrets_in(text: str) -> tuple[SecretName, ...]:
    """Return the names of the secrets that a text refers to, each once."""
    return tuple(dict.fromkeys(SecretName(match[1]) for match in _WRITTEN.finditer(text)))


def malformed_references(text: str) -> list[str]:
    """Return the parts of a text that begin as a reference to a secret and are not one."""
    return [match[0] for match in _LIKE_REFERENCE.finditer(text) if not _WRITTEN.match(match[0])]


def with_values(text: str, value_of: Callable[[SecretName], str]) -> str:
    """Return a text with values in the place of its references."""
    return _REFERENCE.sub(lambda match: value_of(SecretName(match[1])), text)


def parts_of(text: str) -> Iterator[str | tuple[SecretName]]:
    """Yield the parts of a text in their order: pieces of plain text, and of each reference its name in a tuple."""
    for number, part in enumerate(_REFERENCE.split(text)):
        if number % 2:
            yield (SecretName(part),)
        elif part:
            yield part


def looks_secret(name: str, value: str) -> bool:
    """Return whether a variable that a file sets is a secret by its name, or because its value is a URL with a user.

    A path in a variable such as ``POSTGRES_PASSWORD_FILE`` is not one, nor is an empty value.
    """
    if not value or name.upper().endswith("_FILE"):
        return False
    return bool(_LOOKS_SECRET.search(name.lower()) or _HAS_USER.search(value))


def is_secret_place(place: Iterable[object]) -> bool:
    """Return whether a place in a study holds environment variables, an address or a value with a secret's name."""
    return any(key in _HIDDEN_KEYS or bool(_LOOKS_SECRET.search(key.lower())) for key in map(str, place))


def is_secret_text(text: str) -> bool:
    """Return whether a text can have a secret: ``PASSWORD=...``, ``--token ...`` or a URL with a user."""
    return bool(
        _LOOKS_SECRET.search(re.sub(r"\W", "_", text.lower())) or _HAS_USER.search(text) or _HAS_PASSWORD.search(text)
    )


def is_ordinary(value: str) -> bool:
    """Return whether only the variable itself hides a value: ``postgres`` is also an image's name."""
    return bool(_ORDINARY.fullmatch(value))


def variables_in(study: Any) -> Iterator[tuple[KeyPath, MutableMapping[str, Any], str]]:
    """Yield every variable and parameter that a study sets: its place, the mapping that holds it, and its name."""
    for pattern in (*_PLACES, *_PARAMETERS):
        for place, found in _matching(study, pattern, ()):
            if isinstance(found, MutableMapping):
                yield from (((*place, str(name)), found, name) for name in [*found])


def always_hidden(place: KeyPath) -> bool:
    """Return whether the value at this place of an older study is hidden, whatever its name is."""
    return place[-2] != _PARAMETERS[0][-1] and place[-1] not in PASSED_ON


def _matching(value: Any, pattern: KeyPath, place: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if not pattern:
        yield place, value
    elif isinstance(value, Mapping):
        keys = [*value] if pattern[0] == "*" else [pattern[0]]
        for key in (each for each in keys if each in value):
            yield from _matching(value[key], pattern[1:], (*place, str(key)))


def with_variables(text: str, replacements: Mapping[KeyPath, str]) -> str:
    """Return the YAML of a study with other values of some variables, by their places; the rest is as it was."""
    patterns = [(*place, "*") for place in (*_PLACES, *_PARAMETERS)] if replacements else []
    nodes = ((replacements.get(place), node) for place, node in _nodes(text, patterns))
    return _with_scalars(text, ((node, new) for new, node in nodes if new is not None))


def with_references(text: str, values: Mapping[SecretName, str]) -> str:
    """Return the YAML of a study with references in the place of values, wherever a study can hold a reference."""
    if not any(value in text for value in values.values()):
        return text
    written = {
        value: reference(name) for name, value in sorted(values.items(), key=lambda item: (-len(item[1]), item[0]))
    }
    in_command = {value: new.replace("{", "{{").replace("}", "}}") for value, new in written.items()}
    nodes: list[tuple[Any, str]] = []
    for patterns, new_by_value in ((_WITH_REFERENCES, written), (_COMMANDS, in_command)):
        for _, node in _nodes(text, patterns):
            for scalar in node.value if node.id == "sequence" else [node]:
                new = scalar.value
                for value in new_by_value if scalar.id == "scalar" else ():
                    new = new.replace(value, new_by_value[value])
                nodes += [(scalar, new)] if new != scalar.value else []
    return _with_scalars(text, nodes)


def _nodes(text: str, patterns: Iterable[KeyPath]) -> Iterator[tuple[KeyPath, Any]]:
    from ruamel.yaml import YAML

    top = YAML(typ="rt").compose(text)
    for pattern in patterns if top is not None else ():
        yield from _matching_nodes(top, pattern, ())


def _matching_nodes(node: Any, pattern: KeyPath, place: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if not pattern:
        yield place, node
        return
    for key, value in _pairs(node):
        if pattern[0] in ("*", key.value):
            yield from _matching_nodes(value, pattern[1:], (*place, str(key.value)))


def _pairs(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the keys and values of a YAML mapping, and of every mapping that is merged into it (``<<``)."""
    waiting, visited = [node], set()
    while waiting:
        each = waiting.pop()
        if id(each) in visited or each.id == "scalar":
            continue
        visited.add(id(each))
        if each.id == "mapping":
            yield from (pair for pair in each.value if pair[0].value != "<<")
            waiting += [value for key, value in each.value if key.value == "<<"]
        elif each is not node:
            waiting += each.value


def _with_scalars(text: str, nodes: Iterable[tuple[Any, str]]) -> str:
    """Return a YAML text with other texts in the place of some of its scalar nodes."""
    spans: dict[int, tuple[int, str]] = {}
    for node, new in nodes:
        start, end = node.start_mark.index, node.end_mark.index
        if start < end:  # else it has no value
            anchor = f"&{node.anchor} " if node.anchor else ""
            line_end = "\n" if text[start:end].endswith("\n") else ""
            spans[start] = end, f"{anchor}{json.dumps(new)}{line_end}"
    for start in sorted(spans, reverse=True):
        end, written = spans[start]
        text = f"{text[:start]}{written}{text[end:]}"
    return text


def hidden_text(text: str) -> str:
    """Return a study that an older Weighbridge stored, without its variables' values; nothing if it is not YAML."""
    from ruamel.yaml import YAML

    try:
        data = YAML(typ="rt").load(text)
        hidden = {place: _NOT_SHOWN for place, _, name in variables_in(data) if always_hidden(place)}
        return with_variables(text, hidden)
    except Exception:  # the parser itself stumbles over some texts: assertions, attributes, recursion
        return _NOT_SHOWN


def hidden_options(options: Any) -> Any:
    """Return options that an older Weighbridge stored, without the values of environment variables.

    Two values that differ are replaced by different words, so that a comparison of two runs shows the difference.
    """
    if isinstance(options, Mapping):
        return {key: _hidden(value) if key in _KEYS else hidden_options(value) for key, value in options.items()}
    return [hidden_options(each) for each in options] if isinstance(options, list) else options


def _hidden(variables: Any) -> Any:
    if not isinstance(variables, Mapping):
        return hidden_options(variables)
    return {
        name: value if name in PASSED_ON or not isinstance(value, str) else f"{_NOT_SHOWN[:-1]}: {_word(value)})"
        for name, value in variables.items()
    }


def _word(value: str) -> str:
    return blake2b(value.encode(errors="replace"), key=_EQUAL_ONLY_HERE, digest_size=2).hexdigest()
