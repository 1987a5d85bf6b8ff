"""The message for a command line that cannot be parsed."""

from typing import Any

from pydantic import ValidationError

from weighbridge.cli.help import OLD_NAMES
from weighbridge.model.spelling import nearest
from weighbridge.model.validation import first_problem


def usage_problem(error: Any) -> str:
    """Return the sentence for a command line that cannot be parsed: the option, what is wrong, and where to look."""
    parameter, options = getattr(error, "param", None), getattr(error, "possibilities", None)
    if parameter is not None:
        problem = f"{_name_of(parameter)}{_problem_of_value(error)}"
    elif options is not None:
        known = [each for each in options if each not in OLD_NAMES]
        problem = f"unknown option {error.option_name}{nearest(error.option_name, known)}"
    else:
        message = error.format_message().rstrip(".").replace("(s)", "s")
        problem = message[:1].lower() + message[1:]
    end = "" if problem.endswith("?") else "."
    return f"{problem.rstrip('.')}{end} Try '{' '.join(help_words(error))}'"


def help_words(error: Any) -> tuple[str, ...]:
    """Return the words of the command that shows the options of the command line."""
    path = error.ctx.command_path.split()[1:] if error.ctx else []
    return ("weighbridge", *path, "--help")


def _name_of(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(max(parameter.opts, key=len))


def _problem_of_value(error: Any) -> str:
    """Return what is wrong with the value of an option: ``: must be at least 1, not 0``."""
    if not isinstance(error.__cause__, ValidationError):
        return f": {error.message}" if error.message else " is missing"
    return f": {first_problem(error.__cause__)[1]}"
