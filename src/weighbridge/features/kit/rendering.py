"""The kit's templates."""

import shlex
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from weighbridge.features.kit.text import markdown, one_line

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = resources.files("weighbridge.features.kit") / "templates"


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - no HTML: each value has its own filter
        loader=FunctionLoader(lambda name: (_TEMPLATES / name).read_text()),
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"line": one_line, "md": markdown, "sh": lambda value: shlex.quote(str(value))}
    return environment


def render(template: str, **values: Any) -> bytes:
    """Return a filled-in template."""
    return _environment().get_template(template).render(**values).encode(errors="replace")


def static(name: str) -> bytes:
    """Return a file that is the same in every kit."""
    return (_TEMPLATES / name).read_bytes()
