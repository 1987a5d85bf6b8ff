"""What a tracer saw of an environment in a trial that is not counted: no cost is made of it."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

TracerName = Literal["perf", "bpftrace"]


class TracedItem(BaseModel):
    """How often a tracer met something: a function that ran, an event of the kernel."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Field(max_length=300)]
    count: Annotated[int, Field(ge=0, le=2**63)]


class Trace(BaseModel):
    """What was seen of one workload in one ``arm``, which explains the cost of an ``environment``, or is it.

    ``items`` are the most frequent ones, first; ``total`` is the count of all. ``failure``: why there are none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    environment: str
    arm: str
    workload: str
    tracer: TracerName
    items: tuple[TracedItem, ...] = ()
    total: Annotated[int, Field(ge=0, le=2**63)] = 0
    failure: str = ""


class Traces(BaseModel):
    """The document ``traces/traces.json`` of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    version: Literal[1] = 1
    traces: tuple[Trace, ...]
