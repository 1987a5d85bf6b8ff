"""The results of a tracer that watched an environment in an uncounted trial, which gives no cost."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

TracerName = Literal["perf", "bpftrace"]


class TracedItem(BaseModel):
    """An item that a tracer counted: a function that ran, or an event of the kernel."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Field(max_length=300)]
    count: Annotated[int, Field(ge=0, le=2**63)]


class Trace(BaseModel):
    """The trace of one workload in one ``arm``, which explains the cost of an ``environment``, or is it.

    ``items`` are the most frequent ones, most frequent first; ``total`` counts all. ``failure`` is the reason if
    there are none.
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
