"""The first program on the other machine: imports our modules from memory, then becomes the agent or its guard.

It is sent as text and must run under Python 3.9. Nothing is written to the other machine.
"""

from __future__ import annotations
import __future__

import dataclasses
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any


class FromMemory(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads modules from their sources: full name -> text; a package's name ends with ".__init__"."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.sources = sources

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of ours; None for all others."""
        package = f"{fullname}.__init__" in self.sources
        if not package and fullname not in self.sources:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=package)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's text."""
        name = module.__name__
        text = self.sources.get(f"{name}.__init__") or self.sources[name]
        # annotations stay text, so that an older Python does not evaluate unknown syntax
        flags = __future__.annotations.compiler_flag
        code = compile(text, f"<{name}>", "exec", flags=flags, dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - our own text over our own connection


def main(sources: Mapping[str, str], cleanups: Sequence[str], program: bytes) -> None:
    """Import our modules from ``sources`` and run the agent; ``program`` is this complete text, for its guard.

    ``cleanups`` are the classes of leftovers of runs, each as "MODULE:NAME".
    """
    if sys.version_info < (3, 10):  # noqa: UP036 - the other machine's Python can be older
        _without_slots()
    sys.meta_path.insert(0, FromMemory(sources))
    importlib.import_module("weighbridge.hosts.agent.main").main(sys.argv[1:], cleanups, program)


def _without_slots() -> None:
    """Ignore ``dataclass(slots=True)``, which Python 3.9 does not have; it only saves memory."""
    original: Any = dataclasses.dataclass

    def dataclass(*arguments: Any, slots: bool = False, **options: Any) -> Any:
        return original(*arguments, **options)

    dataclasses.dataclass = dataclass
