"""Real outputs in ``data/``, each with what the program itself printed; data/README.md says how each was made."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from weighbridge import registry
from weighbridge.model.adapter import AdapterOptions
from weighbridge.model.measurement import Measurement, TrialFailure

DATA = Path(__file__).parent / "data"


@cache
def data(name: str) -> bytes:
    """One captured output."""
    return (DATA / name).read_bytes()


def options(kind: str, given: dict[str, Any]) -> AdapterOptions:
    """The options of an adapter."""
    return registry.adapters()[kind].options.model_validate(given)


@dataclass(frozen=True)
class Case:
    """A captured output under some options, and the values that stand in it, by metric."""

    kind: str
    file: str
    values: dict[str, float]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file}{sorted(self.options) or ''}"

    @property
    def stdout(self) -> bytes:
        """What was printed."""
        return data(self.file)

    def read(self, stdout: bytes) -> tuple[Measurement, ...]:
        """The measurements of an output under this case's options."""
        return options(self.kind, self.options).read(stdout, b"")


@dataclass(frozen=True)
class Bad:
    """A captured output that is no measurement, and the sentence that is said of it."""

    kind: str
    file: str
    failure: type[TrialFailure]
    told: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.file


GOOD: list[Case] = []
BAD: list[Bad] = []
