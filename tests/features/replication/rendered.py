"""A replication in the terminal and as a page."""

import io
from pathlib import Path

from rich.console import Console

from weighbridge.features.replication.comparison import Replication
from weighbridge.features.replication.report import replication_document
from weighbridge.report.render_page import write_document
from weighbridge.report.render_terminal import print_document
from weighbridge.store.run import RunStore


def printed(found: Replication, store: RunStore, width: int = 200) -> str:
    """Return the tables as they are printed below a run's own report."""
    text = io.StringIO()
    print_document(replication_document(found, store), Console(file=text, width=width), full=True, details=False)
    return text.getvalue()


def page(found: Replication, store: RunStore, path: Path | None = None) -> str:
    """Return the page, which is written into the run's directory unless `path` is given."""
    path = path or store.directory / "replication.html"
    assert write_document(replication_document(found, store), path, store.directory) == path
    return path.read_text()
