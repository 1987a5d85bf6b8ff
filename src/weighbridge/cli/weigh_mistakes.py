"""What is wrong with a command line of `weighbridge weigh`, told without the study that is made of it."""

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighbridge.cli.output import WRONG_COMMAND_LINE, fail

if TYPE_CHECKING:
    from weighbridge.model.study import Study

_NAME = "weigh"
_LINE = re.compile(rf"^{_NAME}:\d+: ", re.MULTILINE)


def checked(text: Callable[[], str]) -> tuple[str, "Study"]:
    """Return the study as text and as it is checked; its lines are nobody's, and no message names them."""
    from weighbridge.errors import StudyError
    from weighbridge.study.loader import check
    from weighbridge.study.source import parse

    try:
        made = text()
        return made, check(parse(made, _NAME)).model_copy(update={"lines": {}})
    except StudyError as error:
        fail(_LINE.sub("", str(error)), WRONG_COMMAND_LINE)


def require_text(*words: str | None) -> None:
    """End with a sentence where a word is no text: a run keeps them, and a report shows them."""
    for word in words:
        try:
            (word or "").encode()
        except UnicodeEncodeError:
            fail(f"{word!a} is not UTF-8, as what a run keeps has to be", WRONG_COMMAND_LINE)


def require_programs(commands: Sequence[Sequence[str] | str | None], env: Mapping[str, Any]) -> None:
    """End with a sentence where a command's program is not on this machine, unless a placeholder names it."""
    for command in commands:
        try:
            words = shlex.split(command) if isinstance(command, str) else command
        except ValueError:
            continue  # the study's check tells it
        if not words or "{" in words[0]:
            continue
        name = words[0]
        if "/" in name and not Path(name).exists():
            fail(f"there is no program {name}", WRONG_COMMAND_LINE)
        if "/" in name and not os.access(name, os.X_OK):
            fail(f"{name} may not be executed: chmod +x, or name its interpreter before it", WRONG_COMMAND_LINE)
        if "/" not in name and shutil.which(name, path=str(env.get("PATH", os.defpath))) is None:
            here = f": say ./{name}" if Path(name).exists() else ""
            fail(f"there is no program {name} in PATH{here}", WRONG_COMMAND_LINE)
