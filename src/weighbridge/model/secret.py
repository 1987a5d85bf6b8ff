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
    r"password|passwd|passphrase|secret|token|credential|(?:^|_)(?:pass|pwd|pw)(?:_|$)|(?:^|_|api|access|private)keys?(?:_|$)"
)
_HAS_PASSWORD = re.compile(r"://[^/\s@]*:[^/\s@]+@")
_PLACES = (
    ("userland", "env"), ("client_userland", "env"), ("environments", "*", "userland", "env"),
    ("environments", "*", "variables"), ("environments", "*", "workloads", "*", "server_env"),
    ("workloads", "*", "server_env"), ("companions", "*", "environment"),
)  # fmt: skip
"""The keys of a study that hold environment variables."""
_KEYS = {place[-1] for place in _PLACES}
_NOT_SHOWN = "(value not shown)"
_EQUAL_ONLY_HERE = secrets.token_bytes(32)
Place = tuple[str, ...]


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
    """Return whether a variable that a file sets is a secret by its name, or as its value is a URL with a password.

    A path in a variable such as ``POSTGRES_PASSWORD_FILE`` is not one, nor is an empty value.
    """
    if not value or name.upper().endswith("_FILE"):
        return False
    return bool(_LOOKS_SECRET.search(name.lower()) or _HAS_PASSWORD.search(value))


def variables_in(study: Any) -> Iterator[tuple[Place, MutableMapping[str, Any], str]]:
    """Yield every environment variable that a study sets: its place, the mapping that holds it, and its name."""
    for pattern in _PLACES:
        for place, found in _matching(study, pattern, ()):
            if isinstance(found, MutableMapping):
                yield from (((*place, str(name)), found, name) for name in [*found])


def _matching(value: Any, pattern: Place, place: Place) -> Iterator[tuple[Place, Any]]:
    if not pattern:
        yield place, value
    elif isinstance(value, Mapping):
        keys = [*value] if pattern[0] == "*" else [pattern[0]]
        for key in (each for each in keys if each in value):
            yield from _matching(value[key], pattern[1:], (*place, str(key)))


def with_variables(text: str, replacements: Mapping[Place, str]) -> str:
    """Return the YAML of a study with other values of some variables, by their places; the rest is as it was."""
    from ruamel.yaml import YAML

    top = YAML(typ="rt").compose(text) if replacements else None
    spans: dict[int, tuple[int, str]] = {}
    for pattern in _PLACES if top is not None else ():
        for place, node in _matching_nodes(top, pattern, ()):
            for key, value in node.value if isinstance(node.value, list) else ():
                new = replacements.get((*place, str(key.value)))
                if new is not None and value.start_mark.index < value.end_mark.index:  # else it has no value
                    anchor = f"&{value.anchor} " if value.anchor else ""
                    end = "\n" if text[value.start_mark.index : value.end_mark.index].endswith("\n") else ""
                    spans[value.start_mark.index] = value.end_mark.index, f"{anchor}{json.dumps(new)}{end}"
    for start in sorted(spans, reverse=True):
        end_of_value, written = spans[start]
        text = f"{text[:start]}{written}{text[end_of_value:]}"
    return text


def _matching_nodes(node: Any, pattern: Place, place: Place) -> Iterator[tuple[Place, Any]]:
    if not pattern:
        yield place, node
    elif isinstance(node.value, list) and node.id == "mapping":
        for key, value in node.value:
            if pattern[0] in ("*", key.value):
                yield from _matching_nodes(value, pattern[1:], (*place, str(key.value)))


def hidden_text(text: str) -> str:
    """Return the text of a study that an older Weighbridge stored, without the values of its environment variables.

    Nothing is shown of a text that is not YAML.
    """
    from ruamel.yaml import YAML

    try:
        data = YAML(typ="rt").load(text)
        hidden = {place: _NOT_SHOWN for place, _, name in variables_in(data) if name not in PASSED_ON}
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
