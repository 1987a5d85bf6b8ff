"""The options of ``weighbridge fleet`` that belong to each provider of machines: ``--partition compute``."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from weighbridge.cli.help import Entry
from weighbridge.features.fleets import providers as providing

_GIVEN = "weighbridge.provider_options"
"""The key of the given options in the context of a command."""
SET_BY_ON = {"kind", "file", "listed", "server"}
"""Options whose values come from the word of ``--on`` or from the provider."""


def without_given(ctx: Any, words: Sequence[str]) -> list[str]:
    """Return the words without the providers' options, which are stored in the context."""
    own, given = [], dict[str, Any]()
    known, rest = _flags(), iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if word == "--" or not option.startswith("--") or name not in known:
            own.append(word)
        elif equals:
            given[name] = value
        elif known[name]:
            given[name] = True
        elif (following := next(rest, None)) is not None:
            given[name] = following
        else:
            ctx.fail(f"option {word} needs a value")
    ctx.meta[_GIVEN] = given
    return own


def given_options(ctx: Any) -> Mapping[str, Any]:
    """Return the providers' options that the command line gives, by the names of their fields."""
    given: Mapping[str, Any] = ctx.meta.get(_GIVEN, {})
    return given


def panels() -> dict[str, list[Entry]]:
    """Return the providers' options, a panel for each provider."""
    return {
        f"--on {provider.word or kind}: {provider.summary}": [
            Entry(f"--{name.replace('_', '-')}", _value(name, field), _about(field))
            for name, field in _fields(provider).items()
        ]
        for kind, provider in providing.providers().items()
    }


def _value(name: str, field: Any) -> str:
    """Return an option's value as it is written; empty for a flag."""
    if field.annotation is bool:
        return ""
    return "N" if int in (field.annotation, *get_args(field.annotation)) else name.upper()


def _about(field: Any) -> str:
    return f"{field.description}." if field.description else ""


def _fields(provider: Any) -> Mapping[str, Any]:
    return {name: field for name, field in provider.options.model_fields.items() if name not in SET_BY_ON}


def _flags() -> dict[str, bool]:
    """Return every option of any provider, and whether it is a flag (True) or needs a value."""
    flags: dict[str, bool] = {}
    for provider in providing.providers().values():
        for name, field in _fields(provider).items():
            flags[name] = flags.get(name, True) and field.annotation is bool
    return flags
