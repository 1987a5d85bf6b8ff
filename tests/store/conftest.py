"""What the tests of the store have in common."""

from pathlib import Path

import pytest

from weighbridge.store.run import RunStore

from .made import STUDY, record


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with one trial, closed."""
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(STUDY, {"run_id": "0123456789ab"})
        store.save(record())
    return tmp_path / "run"
