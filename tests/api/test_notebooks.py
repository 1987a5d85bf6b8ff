"""The notebooks of the documentation: each has a page with its outputs, which tests/test_docs.py executes."""

import json
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import notebook_pages  # noqa: E402


@pytest.mark.parametrize("name", notebook_pages.names())
def test_a_notebook_is_one_without_outputs_and_has_a_page(name: str):
    notebook = json.loads((notebook_pages.FOLDER / f"{name}.ipynb").read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    for cell in notebook["cells"]:
        assert cell["id"] and isinstance(cell["source"], list)
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)
    page = (notebook_pages.FOLDER / f"{name}.md").read_text()
    assert page.splitlines()[0] == notebook["cells"][0]["source"][0].strip()
    assert f"<!-- generated: notebook {name} -->" in page


def test_outputs_are_what_a_notebook_shows():
    class Shown:
        def _repr_html_(self):
            return "<table></table>"

    namespace = {"shown": Shown()}
    assert notebook_pages._executed("shown", namespace) == "<div>\n<table></table>\n</div>"
    assert notebook_pages._executed("x = 1\nprint('a')\nx + 1", namespace) == "```text\na\n```\n\n```text\n2\n```"
    assert notebook_pages._executed("x = 1", namespace) == ""
    with pytest.raises(ZeroDivisionError):
        notebook_pages._executed("1 / 0", namespace)
