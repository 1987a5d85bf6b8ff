"""The JSON document of comment."""

from dataclasses import dataclass
from typing import Literal

from weighbridge.model.document import Documented

Outcome = Literal["created", "edited", "not-posted"]


@dataclass(frozen=True, kw_only=True)
class CommentDocument(Documented):
    """The document of ``weighbridge comment --json``."""

    version: Literal[1] = 1
    outcome: Outcome
    text: str
    """The comment as Markdown."""
