"""The kept runs that the examples of the Python API name, in a folder ``runs``."""

import lzma
from pathlib import Path

import pytest

from report.conftest import finished_run, run
from weighbridge.store.run import DATABASE

__all__ = ["finished_run", "run", "runs"]
KEPT = Path(__file__).parents[2] / "docs/runs"


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the directories of three kept runs."""
    folder = tmp_path_factory.mktemp("kept") / "runs"
    for name in ("weigh", "weigh-server", "weigh-server-later"):
        (folder / name).mkdir(parents=True)
        (folder / name / DATABASE).write_bytes(lzma.decompress((KEPT / f"{name}.sqlite.xz").read_bytes()))
    return folder
