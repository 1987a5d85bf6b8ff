"""The command line as a user calls it, small studies, and a run directory read back."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.store.database import read_copy
from weighbridge.store.safe_folder import SafeFolder

PROGRAM = (sys.executable, "-m", "weighbridge")
PATIENCE_S = 120.0
NATIVE = "native: {kind: native}"
DOCKER = "bridge: {kind: docker, network: bridge}"
CPU = "cpu: {kind: sysbench-cpu, duration: 1s}"
REDIS = "redis: {kind: redis-benchmark, requests: 2000, clients: 5, tests: set}"

IN_STORAGE_TESTS = {"pgbench", "fio", "metadata", "bonnie", "sqlite"}
"""Workloads that `test_storage_workloads` alone has: their packages would make every image larger."""
NOT_IN_IMAGES = {"agent-session", *IN_STORAGE_TESTS}
"""Workloads whose packages the images of the tests lack; agent-session is measured with this machine's programs."""
ELSEWHERE = {"mysql-oltp", "nginx-wrk", "nginx-vegeta", "linpack", *NOT_IN_IMAGES}
"""Workloads with real tests of their own: in every environment they, or their packages, would take minutes."""


class Silent:
    """Progress that nobody looks at."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: None


def kinds_in_every_environment(calls_back: bool) -> list[str]:
    """The workloads that one study measures in all environments; ``calls_back``: those whose server connects back."""
    found = registry.workloads().items()
    return [kind for kind, workload in found if workload.server_calls_client is calls_back and kind not in ELSEWHERE]


def write_study(
    folder: Path,
    *,
    environments: tuple[str, ...] = (NATIVE,),
    workloads: Sequence[str] = (REDIS,),
    blocks: int = 2,
    repetitions: str = "",
    aa: bool = False,
    resources: str = "{cpus: 1, memory: 512MiB}",
    further: tuple[str, ...] = (),
) -> Path:
    """A study file in the folder."""
    path = folder / "study.yaml"
    lines = [
        "study: tiny", "question: Does it run?", f"resources: {resources}", "baseline: native",
        f"aa: {str(aa).lower()}", "environments:", *(f"  {line}" for line in environments),
        "workloads:", *(f"  {line}" for line in workloads), f"repetitions: {repetitions or f'{{blocks: {blocks}}}'}",
        "seed: 3", *further,
    ]  # fmt: skip
    path.write_text("\n".join(lines) + "\n")
    return path


@dataclass(frozen=True)
class Ended:
    """A command that ended."""

    code: int
    stdout: str
    stderr: str

    def must_fail(self, code: int, *words: str) -> None:
        """It failed with this code and one sentence (beside how to continue) with these words; no traceback."""
        assert self.code == code, self
        assert "Traceback" not in self.stderr and "Traceback" not in self.stdout, self
        told = [line for line in self.stderr.splitlines() if line.startswith("weighbridge: ")]
        assert len([line for line in told if "to continue: " not in line]) == 1, self
        for word in words:
            assert any(word in line for line in told), (word, told)


def weighbridge(*arguments: object, env: Mapping[str, str] | None = None) -> Ended:
    """Run a command to its end."""
    argv = [*PROGRAM, *(str(argument) for argument in arguments)]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=PATIENCE_S * 4, env={**os.environ, **(env or {})}, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr)


class Going:
    """A `weighbridge run` that goes on while the test looks at it."""

    def __init__(self, *arguments: object, env: Mapping[str, str] | None = None, files: Path) -> None:
        self._out, self._err = files / "stdout", files / "stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [*PROGRAM, *(str(argument) for argument in arguments)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**os.environ, **(env or {})},
            )  # fmt: skip

    def await_text(self, text: str) -> None:
        """Wait until it has said this."""
        self.await_that(lambda: text in self._err.read_text(errors="replace"), f"it says '{text}'")

    def await_that(self, condition: Callable[[], Any], what: str = "the condition") -> None:
        """Wait until something is the case while the run goes on."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the run ended ({self.process.returncode}) or time ran out before {what}: {self.told()}")
            time.sleep(0.03)

    def told(self) -> str:
        """What it has written to standard error."""
        return self._err.read_text(errors="replace")

    def end(self, number: int | None = None) -> Ended:
        """Send a signal, if one is given, and wait for the end."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        return Ended(code, self._out.read_text(errors="replace"), self.told())


@contextmanager
def going(*arguments: object, env: Mapping[str, str] | None = None, files: Path) -> Iterator[Going]:
    """A run that goes on; ended in good order where the test fails."""
    run = Going(*arguments, env=env, files=files)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            run.process.send_signal(signal.SIGTERM)
            try:
                run.process.wait(60)
            except subprocess.TimeoutExpired:
                run.process.kill()
                run.process.wait()


Row = dict[str, Any]


def killed_after_a_trial(study: Path, run: Path, files: Path) -> None:
    """Run a study, and end Weighbridge by SIGKILL as soon as a trial is saved."""
    with going("run", study, "--rehearsal", "--out", run, "--yes", files=files) as program:
        program.await_that(lambda: trials(run), "a trial is saved")
        program.end(signal.SIGKILL)


def rows(directory: Path, query: str) -> list[Row]:
    """The rows of a query to a run's database, also while the run goes on; none before its tables are made."""
    try:
        with SafeFolder.open(directory) as folder, contextlib.closing(read_copy(folder)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query)]
    except (FileNotFoundError, sqlite3.OperationalError):
        return []


def trials(directory: Path) -> list[Row]:
    """The rows of the trials that are saved so far; none where there is no store yet."""
    return rows(directory, "SELECT * FROM trial ORDER BY id")


def run_id(directory: Path) -> str:
    """The id of the run in a directory, "-" where there is none yet."""
    keys = rows(directory, "SELECT value FROM run WHERE key = 'run_id'")
    return str(keys[0]["value"]) if keys else "-"


def facts(directory: Path) -> dict[tuple[str, str], str]:
    """(scope, key) -> value of every fact."""
    return {(row["scope"], row["key"]): row["value"] for row in rows(directory, "SELECT scope, key, value FROM fact")}
