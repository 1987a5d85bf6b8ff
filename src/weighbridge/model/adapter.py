"""The protocol of adapters: each reads the output format of one program."""

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.options import Options
from weighbridge.model.plugin import Plugin

_LONGEST = 60


class AdapterOptions(Options):
    """The base class of an adapter's options. The options also read the output, because the metrics depend on them.

    They start no process and open no file.
    """

    kind: str
    """The name of the adapter."""

    @abstractmethod
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics that it reads with these options, before anything runs.

        The first is the primary metric. There is at least one, and every name is unique.
        """

    @abstractmethod
    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """Return a value for each of ``metrics`` from the output of a program that ended with code 0.

        Raises Unparseable if a value is missing, and ProgramFailed if the output reports a failure.
        """


class Adapter(Plugin):
    """The output format of one program."""

    options: ClassVar[type[AdapterOptions]]
    """The model of its options. It does the reading."""
    usage: ClassVar[str]
    """The command line with which the program prints this format."""


def safe_name(text: str) -> str:
    """Return a metric's name for a program's name of a benchmark: ``fib_n_20`` for ``Fib/n=20``.

    It has small letters, digits and underscores, 60 at most. Raises ValueError if nothing is left.
    """
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:_LONGEST].rstrip("_")
    if not name:
        raise ValueError(f"'{text:.60}' gives no metric name: it has no ASCII letter or digit")
    return name if name[0].isalpha() else f"n_{name}"[:_LONGEST]


def named_twice(names: Sequence[str]) -> str:
    """Return the first name that occurs more than once; empty if none does."""
    return next((name for name in names if names.count(name) > 1), "")
