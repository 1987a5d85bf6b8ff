"""Secrets that a study file spells out: the study that is run, stored and shown has references in their place."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from weighbridge.errors import StudyError
from weighbridge.model.secret import (
    KeyPath,
    always_hidden,
    looks_secret,
    malformed_references,
    reference,
    secret_name,
    secrets_in,
    variables_in,
    with_references,
    with_variables,
)
from weighbridge.secret_values import keep, never_stored
from weighbridge.study.source import Source, parse, plain


def without_secrets(source: Source, *, every: bool = False) -> Source:
    """Return a study with references in the place of environment variables that look secret; keep their values.

    ``every``: each variable but those that `weigh` always passes on, as for a study that an older Weighbridge stored.
    """
    found: dict[KeyPath, str] = {}
    for place, variables, name in variables_in(source.data):
        value = str(variables[name])
        is_value = isinstance(variables[name], str | int | float) and not secrets_in(value)
        if is_value and (looks_secret(str(name), value) or (every and always_hidden(place))):
            if place[-2] == "parameters":
                if "'" in value:  # a shell's text has the reference in such marks
                    problem = "a secret with a single quotation mark must be a variable, not a parameter"
                    raise StudyError(f"{source.where(place)}: {plain(name, 60)}: {problem}")
                owner = place[:-1]
            else:
                owner = place[:-2] if place[0] != "userland" else ()
            secret = secret_name(*owner, str(name))
            keep(secret, value)
            found[place] = reference(secret)
    if not found:
        return _without_copies(source)
    data = copy.deepcopy(source.data)
    for place, variables, name in variables_in(data):
        if (place in found) and not secrets_in(str(variables[name])):
            variables[name] = found[place]
    return _without_copies(replace(source, data=data, text=with_variables(source.text, found)))


def wrong_references(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield each place of a study that has a malformed reference to a secret, and the message about it."""
    if isinstance(value, str):
        for each in malformed_references(value):
            yield (
                place,
                f"'{each}' is not a valid reference to a secret: write ${{secret:NAME}}, with letters, digits and "
                "any of '_', '.', '-', '~' and '%' only",
            )
    elif isinstance(value, Mapping | list):
        entries = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, each in entries:
            yield from wrong_references(each, (*place, key))


def _without_copies(source: Source) -> Source:
    """Return a study with references to the known values that its merged keys, commands or parameters repeat."""
    text = with_references(source.text, never_stored())
    return source if text == source.text else parse(text, source.name)
