"""Requirements on costs as they are written on a command line."""

from collections.abc import Callable
from typing import TypeVar

from weighbridge.analysis.requirement import RequirementError
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.model.text import printable

T = TypeVar("T")


def checked(judge: Callable[[], T], prefix: str) -> T:
    """Return the result of ``judge``. A wrong requirement exits as a wrong command line."""
    try:
        return judge()
    except RequirementError as error:
        fail(f"{prefix}{printable(str(error))}", WRONG_COMMAND_LINE)
