"""The public names: exactly these, cheap to import, with examples that are true."""

import ast
import doctest
from collections.abc import Iterator
from pathlib import Path

import pytest

import weighbridge

SOURCE = Path(weighbridge.__file__)
MODULES = sorted(SOURCE.parent.glob("api/*.py"))


def test_every_public_name_is_there_and_no_other():
    assert dir(weighbridge) == sorted(weighbridge.__all__)
    assert all(getattr(weighbridge, name).__module__ for name in weighbridge.__all__ if name != "__version__")
    assert weighbridge.__version__.count(".") == 2
    with pytest.raises(AttributeError):
        weighbridge.nothing  # noqa: B018


def test_the_import_loads_nothing():
    tree = ast.parse(SOURCE.read_text())
    assert [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)] == []
    checked = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names} - {
        "metadata",
        "import_module",
    }
    assert checked | {"__version__"} == {*weighbridge.__all__}, "a type checker sees the names that exist"


def test_it_says_that_it_has_types():
    assert SOURCE.with_name("py.typed").exists()


def examples() -> Iterator[doctest.DocTest]:
    """Yield the docstrings with examples; doctest itself misses those of cached properties before Python 3.13."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and ">>>" in (text := ast.get_docstring(node) or ""):
                names = {"weighbridge": weighbridge}
                yield doctest.DocTestParser().get_doctest(text, names, node.name, str(path), node.lineno)


@pytest.mark.parametrize("example", [*examples()], ids=lambda example: example.name)
def test_an_example_is_true(example: doctest.DocTest, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(runs.parent)
    failed, tried = doctest.DocTestRunner().run(example)
    assert tried and not failed, capsys.readouterr().out
