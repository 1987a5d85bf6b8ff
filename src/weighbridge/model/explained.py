"""What a run keeps of the mechanisms that explain a cost: its report needs no plug-in of theirs."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PATH: Literal["path"] = "path"
"""`Proof.of` where the fact is a field of the network path (`weighbridge.model.facts.NetworkPath`)."""


class Proof(BaseModel):
    """What shows that a mechanism is off: a ``fact`` that has another value than with it.

    It fits ``off`` as a whole, a regular expression, where that is given. ``of``: the fact is one of the sites of the
    environment, or `PATH`: of its network path.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    fact: str
    off: str | None = None
    of: Literal["site", "path"] = "site"


class Explains(BaseModel):
    """Which environment an arm is, and which of its mechanisms are ``off`` there."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    environment: str
    off: tuple[str, ...] = Field(min_length=1)


class DescribedMechanism(BaseModel):
    """A mechanism of one environment.

    ``off_with``: those that are off on both sides of its comparison, as it cannot be off without them. ``takes``: the
    titles of those that go with it, as they cannot be off before it. ``counters``: how the names of metrics begin
    that tell of its work. ``refused``: why it cannot be switched off in this study; ""
    where an arm has it off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: str
    environment: str
    title: str
    switched: str
    remedy: str
    source: str
    off_with: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    proof: Proof | None = None
    refused: str = ""
