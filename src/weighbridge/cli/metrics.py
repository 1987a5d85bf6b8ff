"""The option --metrics: the run is also told to Prometheus."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.output import WRONG_COMMAND_LINE, err, fail

if TYPE_CHECKING:
    from weighbridge.model.study import Study
    from weighbridge.runner.session import Progress

Address = tuple[str, int]
MetricsOption = typer.Option(
    None,
    "--metrics",
    metavar="127.0.0.1:PORT",
    help="Serve the live run to Prometheus at this address, loopback only (port 0: any free port).",
)


def address(text: str | None) -> Address | None:
    """Where metrics are wanted; a wrong address ends the command."""
    if text is None:
        return None
    from weighbridge.live.server import address_of

    try:
        return address_of(text)
    except ValueError as wrong:
        fail(f"--metrics: {wrong}", WRONG_COMMAND_LINE)


@contextmanager
def watched(at: Address | None, progress: "Progress", study: "Study | None", directory: Path) -> Iterator["Progress"]:
    """Who is told of the run: the person, and Prometheus where metrics are wanted. Unavailable: the port is taken."""
    if at is None:
        yield progress
        return
    from weighbridge.live.fanout import ProgressFanout
    from weighbridge.live.server import serving
    from weighbridge.live.snapshot import Live

    live = Live()
    with serving(at, live, study.file.study if study is not None else _name(directory)) as url:
        err().print(f"metrics: {url}", markup=False)
        yield ProgressFanout(progress, live)


def _name(directory: Path) -> str:
    """The study of the run that is continued."""
    from weighbridge.store.run import RunStore

    with RunStore(directory) as store:
        return store.info().get("study", "")
