"""How Sphinx builds the documentation, without a network; the HTML build adds the reports of the kept runs."""

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


def _write_examples(app: Any, failure: Exception | None) -> None:
    """Write the HTML reports of the kept runs into the folder ``examples`` of the site."""
    if failure is None and app.builder.format == "html":
        from kept_runs import write_examples

        write_examples(Path(app.outdir) / "examples")


def setup(app: Any) -> dict[str, Any]:
    """Write the example reports after each HTML build."""
    app.connect("build-finished", _write_examples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
