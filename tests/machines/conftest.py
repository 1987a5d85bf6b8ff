"""Whole machines: each test is marked ``machines``, and its outcome is kept for docs/reference/machines.md."""

import functools
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import guest, images, installed, rows

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.machines)
            item.add_marker(pytest.mark.real)  # may start processes


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture, option in (("machine", "--machines"), ("user", "--users")):
        if fixture in metafunc.fixturenames:
            chosen = metafunc.config.getoption(option).split(",")
            metafunc.parametrize(fixture, chosen, indirect=True, scope="session")


@pytest.fixture(scope="session")
def machine(request: pytest.FixtureRequest) -> Iterator[guest.Guest]:
    """The machine, booted; one that was left running is used as it is."""
    folder = images.machines_folder()
    _commit()
    running = guest.running(request.param, folder) or guest.boot(request.param, folder)
    running.must("root", "mkdir", "-p", "/opt/tests")
    for source in (HERE / "inside").iterdir():
        running.send("root", source, "/opt/tests/")
    installed.refresh(running)
    yield running
    if not request.config.getoption("--keep-machines"):
        running.stop()


@pytest.fixture(scope="session")
def user(request: pytest.FixtureRequest) -> rows.User:
    """As whom it is tried."""
    return rows.USERS[request.param]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if HERE in item.path.parents and (report.when == "call" or report.failed):
        parameters = item.callspec.params  # type: ignore[attr-defined]
        failure = report.longrepr.reprcrash.message if report.failed and hasattr(report.longrepr, "reprcrash") else ""
        record = {
            "machine": parameters["machine"],
            "user": parameters.get("user", "root"),
            "test": item.originalname,  # type: ignore[attr-defined]
            "case": parameters.get("kind", ""),
            "outcome": report.outcome,
            "seconds": round(call.duration),
            "commit": _commit(),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "failure": failure[:1500],
        }
        with RESULTS.open("a") as file:
            file.write(json.dumps(record) + "\n")
    return report


@functools.cache
def _commit() -> str:
    """Return the commit that this session began with: its wheel is of it, or of what has changed since."""
    git = ("git", "-C", str(HERE))
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    changed = [*git, "diff", "--quiet", "HEAD", "--", ":/src", ":/pyproject.toml", ":/constraints.txt"]
    return commit.stdout.strip() + ("-dirty" if subprocess.run(changed, check=False).returncode else "")
