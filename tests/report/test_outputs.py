"""Somebody else's run: what its store names is read only where it is an output of that run."""

import os
import sqlite3
from pathlib import Path

import pytest

from weighbridge.report.html import write_html
from weighbridge.report.sections.trials import processes
from weighbridge.store.run import RunStore

SECRET = "a line of a file that is not the run's"


def _secret(folder: Path) -> Path:
    path = folder / "secret"
    path.write_text(SECRET)
    return path


def _name_everywhere(directory: Path, name: object) -> None:
    with sqlite3.connect(directory / "run.sqlite") as database:
        database.execute("UPDATE process SET stdout = ?, stderr = ?", (name, name))
    database.close()


def _outputs(directory: Path) -> list[str]:
    with RunStore(directory) as store:
        found = processes(store, directory / "report.html")
        return [output.excerpt for each in found.values() for process in each for output in process.outputs]


def test_the_runs_own_outputs_are_shown(run):
    store = run(costs={"bridge": 1.25}, blocks=1, outputs=True)
    assert _outputs(store.directory) == ['{"end": {"sum": 1}}\n'] * 3


@pytest.mark.parametrize(
    "name", ["{secret}", "../secret", "raw/../../secret", "raw//{secret}", "raw/", "raw", "", "raw/.."]
)
def test_no_other_path_is_read(run, tmp_path: Path, name: object):
    secret = _secret(tmp_path)
    directory = run(costs={"bridge": 1.25}, blocks=1, outputs=True).directory
    _name_everywhere(directory, name.format(secret=secret) if isinstance(name, str) else name)
    assert _outputs(directory) == []
    with RunStore(directory) as store:
        assert SECRET not in write_html(store, directory / "report.html").read_text()


def test_no_link_is_followed(run, tmp_path: Path):
    secret = _secret(tmp_path)
    directory = run(costs={"bridge": 1.25}, blocks=1, outputs=True).directory
    (directory / "raw/linked").symlink_to(secret)
    _name_everywhere(directory, "raw/linked")
    assert _outputs(directory) == []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    secret.rename(elsewhere / "secret")
    (directory / "raw").rename(directory / "was-raw")
    (directory / "raw").symlink_to(elsewhere)
    _name_everywhere(directory, "raw/secret")
    assert _outputs(directory) == []


def test_what_is_no_file_is_not_waited_for(run):
    directory = run(costs={"bridge": 1.25}, blocks=1, outputs=True).directory
    os.mkfifo(directory / "raw/pipe")
    _name_everywhere(directory, "raw/pipe")
    assert _outputs(directory) == []


def test_the_page_replaces_a_link_in_the_run_and_follows_one_elsewhere(run, tmp_path: Path):
    secret = _secret(tmp_path)
    store = run(costs={"bridge": 1.25}, blocks=1, outputs=True)
    page = store.directory / "report.html"
    page.symlink_to(secret)
    write_html(store, page)
    assert secret.read_text() == SECRET and not page.is_symlink()
    elsewhere = tmp_path / "page.html"  # as the user asks, such as /dev/stdout
    elsewhere.symlink_to(secret)
    write_html(store, elsewhere)
    assert secret.read_text().startswith("<!")
