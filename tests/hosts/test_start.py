"""What is sent to the other machine: all that the agent imports, and nothing that is not in the standard library."""

import ast
import sys
import types
import zlib

import pytest

from weighbridge.hosts.agent import loader
from weighbridge.hosts.remote import start

SOURCES = start.sources()


def test_it_has_the_agent_and_what_it_uses():
    wanted = {
        "weighbridge.__init__",
        "weighbridge.hosts.agent.main",
        "weighbridge.linux.cgroups",
        "weighbridge.linux.process",
        *(kind.__module__ for kind in start.cleanups()),
    }
    assert wanted <= set(SOURCES)
    assert not any(".environments" in name or ".workloads" in name or ".runner" in name for name in SOURCES)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_it_needs_only_the_standard_library(name: str):
    for node in ast.walk(ast.parse(SOURCES[name])):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for root in (name.split(".")[0] for name in names):
            assert root == "weighbridge" or root in sys.stdlib_module_names


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_python_3_9_can_read_it(name: str):
    read = ast.parse(SOURCES[name], feature_version=(3, 9))
    assert "strict" not in {node.arg for node in ast.walk(read) if isinstance(node, ast.keyword)}, (
        "zip has none there"
    )


def test_the_program_is_one_text_that_starts_the_agent():
    text = zlib.decompress(start.program()).decode()
    assert text.startswith('"""') and text.rstrip().endswith(", p)")
    assert compile(text, "program", "exec")
    assert len(start.program()) < 100_000


def test_modules_are_loaded_from_memory(monkeypatch: pytest.MonkeyPatch):
    texts = {"wb_far.__init__": "NAME = __name__", "wb_far.part": "from wb_far import NAME\nx: Unknown | None = 1"}
    monkeypatch.setattr(sys, "meta_path", [loader.FromMemory(texts), *sys.meta_path])
    import wb_far.part

    assert isinstance(wb_far, types.ModuleType)
    assert (wb_far.part.NAME, wb_far.part.x) == ("wb_far", 1)
    with pytest.raises(ImportError):
        import wb_far.other
    for name in ("wb_far", "wb_far.part"):
        monkeypatch.delitem(sys.modules, name)
