"""The document that a command prints with ``--json`` if it fails, with its type."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weighbridge.cli.output import print_json
from weighbridge.model.document import Documented, SuggestedStep


@dataclass(frozen=True, kw_only=True)
class Failure(Documented):
    """The reason why a command failed."""

    exit_code: int
    kind: str
    """The kind of the failure, as in the table of exit codes."""
    message: str
    """The message for people, which often says what to do."""


@dataclass(frozen=True, kw_only=True)
class ErrorDocument(Documented):
    """The document of every command that fails with ``--json`` before it has a result."""

    version: Literal[1]
    error: Failure
    next_steps: tuple[SuggestedStep, ...] = ()
    """The commands that help; empty if only the message says what to do."""


def print_failure(
    message: str, code: int, kind: str, *, continue_with: Sequence[str], help_with: Sequence[str]
) -> None:
    """Print the document. The parameters are as in `weighbridge.cli.messages.fail`."""
    steps: list[SuggestedStep] = []
    if continue_with:
        reason = "The run can be continued after the cause is removed."
        steps.append(SuggestedStep(code="unfinished", reason=reason, command=(*continue_with,)))
    if help_with:
        steps.append(SuggestedStep(code="usage", reason="This shows the options.", command=(*help_with,)))
    failure = Failure(exit_code=code, kind=kind, message=message)
    print_json(ErrorDocument(version=1, error=failure, next_steps=tuple(steps)))
