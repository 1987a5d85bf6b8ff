"""The option --metrics: serve the running run to Prometheus."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from weighbridge.cli.feature import Watch
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import err
from weighbridge.features.monitoring import server
from weighbridge.features.monitoring.fanout import ProgressFanout
from weighbridge.features.monitoring.snapshot import Live
from weighbridge.model.study import Study
from weighbridge.runner.session import Progress
from weighbridge.store.run import RunStore

Address = tuple[str, int]


def address(text: str | None) -> Address | None:
    """Return the address of ``--metrics``. Exit with a message if it is wrong."""
    if text is None:
        return None
    try:
        return server.address_of(text)
    except ValueError as wrong:
        fail(f"--metrics: {wrong}", WRONG_COMMAND_LINE)


def watching(text: str | None) -> Watch:
    """Return how to serve a run at the address of ``--metrics``. Exit with a message if it is wrong."""
    return partial(watched, address(text))


@contextmanager
def watched(at: Address | None, progress: Progress, study: Study | None, directory: Path) -> Iterator[Progress]:
    """Yield the progress that informs the user and, if there is an address, also Prometheus.

    Raises Unavailable if the port is in use.
    """
    if at is None:
        yield progress
        return
    live = Live()
    with server.serving(at, live, study.file.study if study is not None else _name(directory)) as url:
        err().print(f"metrics: {url}", markup=False)
        yield ProgressFanout(progress, live)


def _name(directory: Path) -> str:
    """Return the name of the study of a continued run."""
    with RunStore(directory) as store:
        return store.info().get("study", "")
