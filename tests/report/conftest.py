"""The fixture that makes runs."""

import pytest

from weighbridge.store.run import RunStore

from .made_up_runs import Recipe, make_run


@pytest.fixture
def run(tmp_path):
    """Make a run in a fresh directory; every store is closed at the end."""
    opened: list[RunStore] = []

    def make(**recipe) -> RunStore:
        opened.append(make_run(tmp_path / f"run{len(opened)}", Recipe(**recipe)))
        return opened[-1]

    yield make
    for store in opened:
        store.close()
