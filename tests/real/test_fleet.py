"""A fleet of machines that ssh reaches: single ones, pairs of them, what is killed in between, and what is left."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge.linux.detached import parsed

from .far import Far, far_hosts
from .weighing import Ended, facts, trials, weighbridge

NAMES = ("a", "b", "c")
PATIENCE_S = 90.0
pytestmark = pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="needs openssh-server")


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Far]]:
    """Three machines, each with a machine id of its own."""
    with far_hosts(tmp_path_factory.mktemp("far"), *NAMES, run_id="f1ee7f1ee7f1") as hosts:
        for number, each in enumerate(hosts, 1):
            each.inside("sh", "-c", f"echo {number:032x} > /run/id && mount --bind /run/id /etc/machine-id")
        yield hosts


@pytest.fixture
def listed(far: list[Far], tmp_path: Path) -> Path:
    """The list of machines."""
    path = tmp_path / "hosts.txt"
    path.write_text("".join(f"{each.host.name} config={each.config}\n" for each in far))
    return path


def _study(folder: Path, *lines: str, seconds: str = "0.1", blocks: int = 2) -> Path:
    path = folder / "study.yaml"
    path.write_text(
        "\n".join((
            "study: many", "question: Does it run?", *lines, "baseline: native", "aa: false",
            "meters: {source: 'off'}", "environments: {native: {kind: native}, other: {kind: native}}",
            f"repetitions: {{blocks: {blocks}}}", "workloads:", f"  nap: {{kind: command, run: 'sleep {seconds}'}}",
        ))
        + "\n"
    )  # fmt: skip
    return path


def _status(folder: Path) -> Any:
    done = weighbridge("fleet", "status", folder, "--json")
    assert done.code == 0, done
    return json.loads(done.stdout)


def _states(folder: Path) -> dict[str, str]:
    return {run["name"]: run["state"] for run in _status(folder)["runs"]}


def _await(condition: Callable[[], Any], folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        log = folder / "drive.log"
        told = log.read_text() if log.exists() else "no log"
        logs = {path.name: path.read_text()[-500:] for path in folder.glob("runs/*.log")}
        assert time.monotonic() < deadline, (told, logs, weighbridge("fleet", "status", folder))
        time.sleep(0.2)


def _ends(folder: Path) -> None:
    _await(lambda: _status(folder)["driver"] == "ended", folder)


def _driver(folder: Path) -> int:
    process = parsed(json.loads((folder / "fleet.json").read_text())["jobs"][-1])
    assert process is not None
    return process.pid


def _submit(study: Path, listed: Path, folder: Path, *more: str) -> Ended:
    return weighbridge("fleet", "submit", study, "--on", listed, "--out", folder, "--rehearsal", "--yes", *more)


def test_single_machines_whose_driver_is_killed_go_on_from_their_last_trial(listed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    done = _submit(_study(tmp_path, seconds="1"), listed, folder)
    assert done.code == 0, done
    _await(lambda: all(trials(folder / "runs" / name) for name in NAMES), folder)
    os.kill(_driver(folder), signal.SIGKILL)
    finished = {name: trials(folder / "runs" / name) for name in NAMES}
    assert not all(state == "finished" for state in _states(folder).values())
    done = weighbridge("fleet", "continue", folder, "--yes")
    assert done.code == 0, done
    _ends(folder)
    assert _states(folder) == dict.fromkeys(NAMES, "finished")
    for name in NAMES:
        kept = trials(folder / "runs" / name)
        assert kept[: len(finished[name])] == finished[name] and len(kept) == 4
    nodes = {facts(folder / "runs" / name)["host local", "machine id"] for name in NAMES}
    assert len(nodes) == len(NAMES)
    assert weighbridge("fleet", "continue", folder, "--yes").stdout.startswith("nothing is missing")
    assert weighbridge("clean", "--check").code == 0
