"""What an adapter has to be: it reads the output format of one program. The registry finds one object per module."""

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.options import Options
from weighbridge.model.plugin import Plugin

_LONGEST = 60


class AdapterOptions(Options):
    """Base of the options of an adapter. The options also read the output, because what to read depends on them.

    Reading is pure: it starts no program and opens no file.
    """

    kind: str

    @abstractmethod
    def metrics(self) -> tuple[Metric, ...]:
        """What it reads under these options, the headline first; at least one, each name once."""

    @abstractmethod
    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """A value for each of ``metrics``, from what a program printed that ended with code 0.

        Raises Unparseable where one is missing, and ProgramFailed where the output tells of a failure.
        """


class Adapter(Plugin):
    """The output format of one program. ``usage``: the command line with which that program prints it."""

    options: ClassVar[type[AdapterOptions]]
    usage: ClassVar[str]


def safe_name(text: str) -> str:
    """Return a metric's name made of what a program calls a benchmark: ``fib_n_20`` of ``Fib/n=20``.

    Small letters, digits and underscores, 60 at most. ValueError where nothing of it is left.
    """
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:_LONGEST].rstrip("_")
    if not name:
        raise ValueError(f"'{text:.60}' gives no metric name: it has no ASCII letter or digit")
    return name if name[0].isalpha() else f"n_{name}"[:_LONGEST]


def named_twice(names: Sequence[str]) -> str:
    """Return the first name that stands more than once; empty where none does."""
    return next((name for name in names if names.count(name) > 1), "")
