"""The first thing that runs over there: imports our modules from memory, then becomes the agent or its guard.

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
        """The spec of a module of ours; None for all others."""
        package = f"{fullname}.__init__" in self.sources
        if not package and fullname not in self.sources:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=package)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's text."""
        name = module.__name__
        text = self.sources.get(f"{name}.__init__") or self.sources[name]
        # annotations stay text, so that an older Python does not evaluate what it does not know
        flags = __future__.annotations.compiler_flag
        code = compile(text, f"<{name}>", "exec", flags=flags, dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - our own text, which came over our own connection


def main(sources: Mapping[str, str], leavings: Sequence[str], program: bytes) -> None:
    """Import our modules from ``sources`` and run the agent; ``program`` is this whole text, for its guard.

    ``leavings``: the classes of what runs may leave, each as "MODULE:NAME".
    """
    if sys.version_info < (3, 10):  # noqa: UP036 - over there it may be older than here
        _without_slots()
    sys.meta_path.insert(0, FromMemory(sources))
    importlib.import_module("weighbridge.hosts.agent.main").main(sys.argv[1:], leavings, program)


def _without_slots() -> None:
    """Python 3.9 knows no ``dataclass(slots=True)``; they only save memory."""
    original: Any = dataclasses.dataclass

    def dataclass(*arguments: Any, slots: bool = False, **options: Any) -> Any:
        return original(*arguments, **options)

    dataclasses.dataclass = dataclass
