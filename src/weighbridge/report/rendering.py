"""The page's templates: what they compile to is kept, for that takes a tenth of a small run's report."""

from functools import cache
from pathlib import Path

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket

from weighbridge.model.text import printable
from weighbridge.report.kept import keep, read_kept
from weighbridge.report.text.formatting import margin, plain, quantity, share
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.remarks import remark_text
from weighbridge.report.text.steps import change_text
from weighbridge.report.text.trial_flags import flag_text

FOLDER = Path(__file__).parent / "templates"


@cache
def templates() -> Environment:
    """Return the environment that renders them; it escapes every value."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, bytecode_cache=_Compiled(), finalize=_shown,
    )  # fmt: skip
    environment.filters.update(
        quantity=quantity,
        plain=plain,
        share=share,
        margin=margin,
        clean=printable,
        flag_text=flag_text,
        metric_title=metric_title,
        remark_text=remark_text,
        change_text=change_text,
    )
    return environment


def _shown(value: object) -> object:
    """No control characters in a page, whoever wrote them: it may be printed in a terminal."""
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return value if shown is value else type(value)(shown)


class _Compiled(BytecodeCache):
    """Jinja compares a checksum of the template, and the versions of itself and of Python."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load what is kept of a template, if anything."""
        if kept := read_kept(_name(bucket)):
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template compiled."""
        keep(_name(bucket), bucket.bytecode_to_string())


def _name(bucket: Bucket) -> str:
    return f"templates/{bucket.key}"
