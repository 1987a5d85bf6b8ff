"""The text that is sent to the other machine: the agent and every module of ours that it imports."""

import ast
import json
import zlib
from pathlib import Path

import weighbridge
from weighbridge import registry
from weighbridge.model.leavings import Leavings

ROOT = "weighbridge.hosts.agent.main"
_SOURCE = Path(weighbridge.__file__).parent


def program() -> bytes:
    """The program, compressed."""
    loader = (_SOURCE / "hosts/agent/loader.py").read_text()
    kinds = [f"{kind.__module__}:{kind.__name__}" for kind in leavings()]
    text = f"{loader}\n\nmain(__import__('json').loads({json.dumps(sources())!r}), {kinds!r}, p)\n"
    return zlib.compress(text.encode(), 9)


def leavings() -> list[type[Leavings]]:
    """The kinds of what plug-ins leave that may be on a machine which ssh reaches, in the registry's order."""
    return [type(there) for each in registry.leavings() if (there := each.elsewhere) is not None]


def sources() -> dict[str, str]:
    """Full name -> text of the modules of the agent and of what it removes, and of all of ours that they import.

    A package's name ends with ".__init__".
    """
    found: dict[str, str] = {}
    waiting = [ROOT, *(kind.__module__ for kind in leavings())]
    while waiting:
        for name in _with_parents(waiting.pop()):
            known = _file(name)
            if known is not None and known[0] not in found:
                found[known[0]] = known[1].read_text()
                waiting += _imports(found[known[0]])
    return found


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _file(name: str) -> tuple[str, Path] | None:
    base = _SOURCE.joinpath(*name.split(".")[1:])
    if (base / "__init__.py").exists():
        return f"{name}.__init__", base / "__init__.py"
    return (name, base.with_suffix(".py")) if base != _SOURCE and base.with_suffix(".py").exists() else None


def _imports(text: str) -> list[str]:
    """Our modules that a text names in its imports, wherever they stand; names within modules may be among them."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in found if name.split(".")[0] == "weighbridge"]
