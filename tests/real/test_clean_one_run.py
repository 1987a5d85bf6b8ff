"""``clean --run``: what one run left goes, and nothing of another one's."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from .weighing import weighbridge

THIS, OTHER = "9e57000000d1", "9e57000000d2"


@contextmanager
def left_by(run: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that a killed run has left, which has the run's variable as all of them have."""
    with subprocess.Popen(["sleep", "60"], env={"WEIGHBRIDGE_RUN": run, "PATH": os.environ["PATH"]}) as process:
        try:
            yield process
        finally:
            process.kill()


def test_only_what_one_run_left_is_removed():
    with left_by(THIS) as mine, left_by(OTHER) as its:
        listed = weighbridge("clean", "--run", THIS, "--check")
        assert listed.code == 1 and listed.stdout == f"process {mine.pid} sleep (run {THIS})\n"
        assert mine.poll() is None, "--check only lists"
        cleaned = weighbridge("clean", "--run", THIS)
        assert cleaned.code == 0, cleaned
        assert cleaned.stdout == f"removed: process {mine.pid} sleep\nno leftovers of run {THIS}\n"
        assert mine.wait(10) == -9 and its.poll() is None
        assert weighbridge("clean", "--run", THIS).stdout == f"no leftovers of run {THIS}\n"
