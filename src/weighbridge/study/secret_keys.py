"""Secrets that a study file spells out: the study that is run, stored and shown has references in their place."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from weighbridge.model.secret import (
    PASSED_ON,
    Place,
    looks_secret,
    malformed_references,
    reference,
    secret_name,
    secrets_in,
    variables_in,
    with_variables,
)
from weighbridge.secret_values import keep
from weighbridge.study.source import Source


def without_secrets(source: Source, *, every: bool = False) -> Source:
    """Return a study with references in the place of environment variables that look secret; keep their values.

    ``every``: each variable but those that `weigh` always passes on, as for a study that an older Weighbridge stored.
    """
    found: dict[Place, str] = {}
    for place, variables, name in variables_in(source.data):
        value = str(variables[name])
        is_value = isinstance(variables[name], str | int | float) and not secrets_in(value)
        if is_value and (looks_secret(str(name), value) or (every and name not in PASSED_ON)):
            owner = place[:-2] if place[0] != "userland" else ()
            secret = secret_name(*owner, str(name))
            keep(secret, value)
            found[place] = reference(secret)
    if not found:
        return source
    data = copy.deepcopy(source.data)
    for place, variables, name in variables_in(data):
        if (place in found) and not secrets_in(str(variables[name])):
            variables[name] = found[place]
    return replace(source, data=data, text=with_variables(source.text, found))


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
