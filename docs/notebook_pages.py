"""Execute the notebooks of the documentation, and write them as Markdown with their outputs.

A notebook is plain JSON, so its cells are executed here in one namespace, without Jupyter. Outputs are what Jupyter
shows: a picture or a table if the last expression of a cell has one, otherwise its text.
"""

import ast
import json
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"


def names() -> list[str]:
    """Return the names of all notebooks."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def page(name: str) -> str:
    """Return a notebook as Markdown, without its title. Raises whatever a cell raises."""
    return "\n\n".join(_parts(json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]))


def _parts(cells: list[dict[str, Any]]) -> Iterator[str]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source.partition("\n")[2].strip() if number == 0 else source
        else:
            yield f"```python\n{source}\n```"
            if output := _executed(source, namespace):
                yield output


def _executed(source: str, namespace: dict[str, Any]) -> str:
    """Execute a cell in the folder of the notebooks, and return its output as Markdown."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, value = StringIO(), None
    with chdir(FOLDER), redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), namespace)  # noqa: S102 - cells of this project
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)  # noqa: S307
    parts = [f"```text\n{printed.getvalue().rstrip()}\n```"] if printed.getvalue() else []
    return "\n\n".join([*parts, *([] if value is None else [_shown(value)])])


def _shown(value: object) -> str:
    bundle = getattr(value, "_repr_mimebundle_", dict)()
    html = bundle.get("image/svg+xml") or getattr(value, "_repr_html_", str)()
    return f"<div>\n{html}\n</div>" if html else f"```text\n{value!r}\n```"
