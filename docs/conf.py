"""How Sphinx builds the documentation: offline, from these pages, from the program and from runs that are kept."""

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

project = "Weighbridge"
release = version = metadata.version("weighbridge")
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Weighbridge"
html_static_path = ["_static"]
html_copy_source = False
html_theme_options = {"source_repository": "", "top_of_page_buttons": []}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
nitpicky = True


def _fill(_app: Any, _page: str, source: list[str]) -> None:
    from generated import filled

    source[0] = filled(source[0])


def _write_examples(app: Any, failure: Exception | None) -> None:
    """Make the reports of the runs that are kept, beside the pages that lead to them."""
    if failure is None and app.builder.format == "html":
        from kept_runs import write_examples

        write_examples(Path(app.outdir) / "examples")


def setup(app: Any) -> dict[str, Any]:
    """Put the generated parts into the pages, and the example reports beside them."""
    app.connect("source-read", _fill)
    app.connect("build-finished", _write_examples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
