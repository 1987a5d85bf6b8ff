"""The options of ``weighbridge fleet`` that are those of who provides the machines: ``--partition compute``."""

from collections.abc import Mapping
from typing import Any

from typer.core import TyperCommand

from weighbridge.cli.output import out

_KEY = "weighbridge.provider_options"
SET_BY_ON = {"kind", "file", "listed", "server"}
"""Options that the word of ``--on`` gives, or who provides the machines."""


class ProviderCommand(TyperCommand):
    """A command that takes, beside its own options, those of every provider of machines, by their fields' names.

    They are known once the providers are loaded, which no other command is to wait for.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the providers' options out of the words before the command's own are read."""
        own, given = [], dict[str, Any]()
        known, words = _flags(), iter(args)
        for word in words:
            option, equals, value = word.partition("=")
            name = option.removeprefix("--").replace("-", "_")
            if word == "--" or not option.startswith("--") or name not in known:
                own.append(word)
            elif equals:
                given[name] = value
            elif known[name]:
                given[name] = True
            elif (following := next(words, None)) is not None:
                given[name] = following
            else:
                own.append(word)  # as any option without its value, which is then told
        ctx.meta[_KEY] = given
        return super().parse_args(ctx, own)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Add the providers' options."""
        super().format_help(ctx, formatter)
        from weighbridge import registry

        for kind, provider in registry.providers().items():
            out().print(f"\n--on {provider.word or kind}: {provider.summary}", markup=False)
            for name, field in _fields(provider).items():
                out().print(f"  --{name.replace('_', '-')}: {field.description}", markup=False)


def given_options(ctx: Any) -> Mapping[str, Any]:
    """Return what the command line gives of the providers' options, by their fields' names."""
    given: Mapping[str, Any] = ctx.meta.get(_KEY, {})
    return given


def _fields(provider: Any) -> Mapping[str, Any]:
    return {name: field for name, field in provider.options.model_fields.items() if name not in SET_BY_ON}


def _flags() -> dict[str, bool]:
    """Every option of some provider, and whether it takes no value."""
    from weighbridge import registry

    flags: dict[str, bool] = {}
    for provider in registry.providers().values():
        for name, field in _fields(provider).items():
            flags[name] = flags.get(name, True) and field.annotation is bool
    return flags
