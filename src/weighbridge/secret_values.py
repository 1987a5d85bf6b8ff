"""The values of secrets: they are in the memory of this process alone, and nothing here writes them anywhere.

A run stores a digest (BLAKE2b) of each value, under a random key of the user. A reader of the run has no key, and
cannot use the digest to try out passwords. The digest also covers the id and the study of the run, so another run
cannot use it. The key is made once, in a file that only the user can read. On another machine the digest cannot be
checked, and Weighbridge says so.
"""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from weighbridge.errors import SecretError, StudyError, Unavailable
from weighbridge.model.secret import (
    PASSED_ON,
    SecretName,
    env_options,
    is_ordinary,
    looks_secret,
    reference,
    variable_of,
    variables_of,
    with_values,
)

VARIABLE = "WEIGHBRIDGE_SECRETS"
"""An environment variable: one process of a fleet hands values on to another in it, as JSON. No program gets it."""
_KEY_BYTES = 32
_SHORTEST = 4
"""Characters of a value that is looked for in messages: a shorter one is part of other words."""
SecretComparison = Literal["same", "changed", "unknown", "new"]
"""How a value compares with the earlier run; ``unknown``: its digest cannot be checked here."""

_values: dict[SecretName, str] = {}
_offered: dict[str, str] = {}
_digests: dict[SecretName, tuple[str, str]] = {}
"""For each secret, the digest of an earlier run and the identity of that run."""


def keep(name: SecretName, value: str) -> None:
    """Keep the value of a secret in the memory of this process."""
    _values[name] = value


def keep_as(name: SecretName, value: str, otherwise: SecretName) -> SecretName:
    """Keep a value under a name, or under another one if the first has a different value; return the name."""
    chosen = name if _values.get(name, value) == value else otherwise
    keep(chosen, value)
    return chosen


def kept(name: SecretName) -> str | None:
    """Return the value of a secret; None if this process does not know it."""
    return _values.get(name)


def offer(variable: str, value: str) -> None:
    """Keep a value that the user gives: ``PASSWORD`` for every such secret, ``db_PASSWORD`` for db's alone."""
    _offered[variable] = value


def expect(digests: Mapping[SecretName, str], identity: str) -> None:
    """Keep the digests that an earlier run has stored, and its identity: values are compared with them."""
    _digests.update({name: (digest, identity) for name, digest in digests.items()})


def revealed(text: str) -> str:
    """Return a text with the values of secrets in the place of references. Raises SecretError if one is missing."""

    def value_of(name: SecretName) -> str:
        if (value := _values.get(name)) is None:
            raise SecretError(_absent((name,)))
        return value

    return with_values(text, value_of) if "${secret:" in text else text


def never_stored() -> Mapping[SecretName, str]:
    """Return the known values that a study must not contain: their names look secret, and they are not ordinary."""
    return {
        name: value
        for name, value in _values.items()
        if looks_secret(variable_of(name), value) and not is_ordinary(value)
    }


def refuse_values_in(*texts: str) -> None:
    """Raise StudyError if one of the texts of a study that a run stores contains a value that it must not contain."""
    for name, value in never_stored().items():
        if any(form in text for form in _forms(value) for text in texts):
            raise StudyError(
                f"the value of {name} also appears elsewhere in the study, which runs store. Remove it there, or "
                f"write {reference(name)} if it is in a command or a variable"
            )


def redacted(text: str) -> str:
    """Return a message in which references stand in the place of every known value of four characters or more."""
    return _redacted(text, {name: value for name, value in _values.items() if len(value) >= _SHORTEST})


def redacted_fact(text: str) -> str:
    """Return a fact without the values that a study must not contain: others also occur in versions and names."""
    return _redacted(text, never_stored())


def _redacted(text: str, values: Mapping[SecretName, str]) -> str:
    """Return a text with references in the place of values, also of values as JSON and Python write them."""
    names = {form: name for name, value in values.items() for form in _forms(value)}
    if not any(form in text for form in names):
        return text
    forms = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    pattern = re.compile(rf"\$\{{secret:[^}}]*\}}|{forms}")  # a reference in the text stays as it is
    return pattern.sub(lambda match: reference(names[match[0]]) if match[0] in names else match[0], text)


def _forms(value: str) -> tuple[str, ...]:
    return value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]


def require(
    names: Sequence[SecretName], *, same: bool = False, again: str = ""
) -> Mapping[SecretName, SecretComparison]:
    """Find the value of every secret, and return how each compares with the earlier run.

    A value comes from a file that was read or from the command line. It can also come from an environment variable of
    this process, but only if the earlier run had the same value: a study can read no other variable of the user.

    ``same``: refuse values that differ from the earlier run. ``again``: a command that reads the values from a file.
    Raises SecretError that names every secret that has no value, or a wrong one.
    """
    compared = {name: _found(name) for name in names}
    without = [name for name in names if name not in _values]
    absent = [name for name in without if compared[name] != "changed"]
    differing = [name for name in names if compared[name] == "changed" and (same or name in without)]
    if sentences := [*filter(None, (_absent(absent, again), _differing(differing, same=same)))]:
        raise SecretError(" ".join(sentences))
    return compared


def without_value(names: Iterable[SecretName]) -> list[SecretName]:
    """Return the secrets of which this process cannot find a value."""
    return [name for name in names if _found(name) and name not in _values]


def unknown_offers(names: Iterable[SecretName]) -> list[str]:
    """Return the variables that the user gives although none of the secrets takes its value from them."""
    known = {variable for name in names for variable in (variable_of(name), _own_variable(name))}
    return [variable for variable in _offered if variable not in known and variable not in PASSED_ON]


def _found(name: SecretName) -> SecretComparison:
    """Keep the value of a secret if it can be found, and return how it compares with the earlier run.

    ``changed`` can also describe a variable of this process whose value is not used.
    """
    variable = variable_of(name)
    inherited = os.environ.get(variable)
    if name not in _values:
        if (given := _offered.get(_own_variable(name), _offered.get(variable))) is not None:
            _values[name] = given
        elif inherited is not None and _comparison(name, inherited) == "same":
            _values[name] = inherited
    value = _values.get(name, inherited)
    return "new" if value is None else _comparison(name, value)


def _own_variable(name: SecretName) -> str:
    return re.sub(r"\W", "_", name)


def digests(names: Iterable[SecretName], identity: str) -> dict[SecretName, str]:
    """Return what a run stores of secrets whose values are known: ``KEY:DIGEST``; "" if this user can have no key.

    ``identity`` is the text that distinguishes the run or fleet from every other one.
    """
    by_name = {name: _values[name] for name in names}
    key = _key() if by_name else b""
    return {name: _digest(key, identity, name, value) if key else "" for name, value in by_name.items()}


def handed_on(names: Iterable[SecretName]) -> dict[str, str]:
    """Return the environment variable that gives the values to another process of ours; {} if there are none."""
    values = {name: _values[name] for name in names if name in _values}
    return {VARIABLE: json.dumps(values)} if values else {}


@contextlib.contextmanager
def handing_on(names: Iterable[SecretName]) -> Iterator[None]:
    """Pass the values to the processes that Weighbridge starts in this context."""
    os.environ.update(handed_on(names))
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


def take_over() -> None:
    """Take the values that another process of ours has handed on, and remove them from our environment."""
    with contextlib.suppress(ValueError, TypeError):
        values = json.loads(os.environ.pop(VARIABLE, "{}"))
        _values.update({SecretName(name): str(value) for name, value in dict(values).items()})


def _absent(names: Sequence[SecretName], again: str = "") -> str:
    if not names:
        return ""
    variables = variables_of(names)
    has = "has no value" if len(names) == 1 else "have no values"
    reason = ", because runs do not store secrets" if any(name in _digests for name in names) else ""
    subject = "it" if variables == [*names] and len(names) == 1 else _listed(variables)
    reads = f", or name the study again: {again}" if again else ""
    return (
        f"{_listed(names)} {has}{reason}. Set {subject} in your environment and add {env_options(variables)}{reads}."
    )


def _differing(names: Sequence[SecretName], *, same: bool) -> str:
    if not names:
        return ""
    one = len(names) == 1
    where = " in your environment" if all(variable_of(name) in os.environ for name in names) else ""
    variables = variables_of(names)
    remedy = "start a new run" if same else f"add {env_options(variables)} to use the new value{'' if one else 's'}"
    return (
        f"{_listed(names)}{where} {'differs' if one else 'differ'} from the value{'' if one else 's'} that this run "
        f"began with. Set the old value{'' if one else 's'}, or {remedy}."
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _comparison(name: SecretName, value: str) -> SecretComparison:
    if name not in _digests:
        return "new"
    (known, identity), key = _digests[name], _key()
    if not key or known.partition(":")[0] != _key_name(key):
        return "unknown"
    return "same" if secrets.compare_digest(known, _digest(key, identity, name, value)) else "changed"


def _digest(key: bytes, identity: str, name: SecretName, value: str) -> str:
    text = json.dumps([identity, name, value]).encode()
    return f"{_key_name(key)}:{blake2b(text, key=key, digest_size=16).hexdigest()}"


def _key_name(key: bytes) -> str:
    """Return the name of a key and of this kind of digest: older digests cannot be compared with it."""
    return blake2b(b"weighbridge: identity, name, value", key=key, digest_size=4).hexdigest()


def _key() -> bytes:
    """Return this user's key, made if there is none; b"" for a user who has no folder for it.

    Raises Unavailable if another user owns the file or can read it.
    """
    try:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
        file = Path(base) / "weighbridge/secrets.key"
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            _make_key(file)
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as old:
            status, key = os.fstat(descriptor), old.read(_KEY_BYTES + 1)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home folder
        return b""
    if status.st_uid != os.geteuid():
        raise Unavailable(f"{file} belongs to user {status.st_uid}: remove the file, or set XDG_STATE_HOME")
    if status.st_mode & 0o077:
        raise Unavailable(f"other users can read {file}: remove the file, and Weighbridge makes a new key")
    return key if len(key) == _KEY_BYTES else b""


def _make_key(file: Path) -> None:
    """Make a key that appears under its name with all of its bytes, whichever process is the first."""
    unnamed = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as new:
            new.write(secrets.token_bytes(_KEY_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(unnamed, file)
    finally:
        unnamed.unlink()
