"""Secrets that a study file spells out: the study that is run, stored and shown has references in their place."""

import copy
from dataclasses import replace

from weighbridge.model.secret import (
    PASSED_ON,
    Place,
    looks_secret,
    reference,
    secret_name,
    secrets_in,
    variables_in,
    with_variables,
)
from weighbridge.secret_values import keep
from weighbridge.study.source import Source

_SECTIONS = (
    "userland", "client_userland", "environments", "workloads", "companions",
    "env", "server_env", "environment", "variables",
)  # fmt: skip
"""Parts of a place that are not part of a secret's name."""


def without_secrets(source: Source, *, every: bool = False) -> Source:
    """Return a study in which environment variables that look secret are references; their values are kept in memory.

    ``every``: each variable but those that `weigh` always passes on, as for a study that an older Weighbridge stored.
    """
    found: dict[Place, str] = {}
    for place, variables, name in variables_in(source.data):
        value = variables[name]
        is_text = isinstance(value, str) and not secrets_in(value)
        if is_text and (looks_secret(str(name), value) or (every and name not in PASSED_ON)):
            secret = secret_name(*(part for part in place if part not in _SECTIONS))
            keep(secret, value)
            found[place] = reference(secret)
    if not found:
        return source
    data = copy.deepcopy(source.data)
    for place, variables, name in variables_in(data):
        if (place in found) and not secrets_in(str(variables[name])):
            variables[name] = found[place]
    return replace(source, data=data, text=with_variables(source.text, found))
