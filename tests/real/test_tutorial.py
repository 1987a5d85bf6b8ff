"""The tutorial: its commands are run as they stand, with less time, and print what the tutorial shows."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs/tutorial"
PAGES = sorted(page.name for page in TUTORIAL.glob("[1-9]-*.md"))
SHORTER = {
    "weigh": ["--rounds", "10"],
    "explain": ["--quick-test", "--rounds", "2"],
    "run": ["--quick-test", "--rounds", "2", "--yes"],
}
"""Options that make a command short, unless it says how many rounds it runs."""
LANDMARKS = (
    "^ *metric +", "^ *(?:run time|rate)", "^ *(?:native|netns|before) ", "^Control (?:passed|failed)", "more costs",
)  # fmt: skip
"""What a report shows in this order, whatever was measured."""
MOST_ROUNDS = 12
"""A command that runs more rounds runs so many here."""
NOTHING_TO_EXPLAIN = 1
"""The exit code of `explain` if no cost of the run is significant, as on a busy machine."""


def commands(page: str) -> Iterator[list[str]]:
    """Yield the words of each command of ours on a page."""
    for block in re.findall(r"^```sh\n(.*?)^```", (TUTORIAL / page).read_text(), re.DOTALL | re.MULTILINE):
        yield from (shlex.split(line) for line in block.splitlines() if line.startswith("weighbridge "))


def expected(page: str) -> list[str]:
    """Return the screens that a page shows."""
    return re.findall(r"<!-- generated: screen .*?```text\n(.*?)```", (TUTORIAL / page).read_text(), re.DOTALL)


def shape(screen: str) -> list[str]:
    """Return the landmarks of a report, in the order of its lines."""
    return [mark for line in screen.splitlines() for mark in LANDMARKS if re.search(mark, line, re.IGNORECASE)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the runs of all steps: a step uses those of the steps before it."""
    made: Path = tmp_path_factory.mktemp("tutorial")
    for page in PAGES:
        text = (TUTORIAL / page).read_text()
        for name, study in re.findall(r"`([\w-]+\.yaml)`:\n\n```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            (made / name).write_text(study)
    return made


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_step_print_what_it_shows(page: str, folder: Path):
    if "redis-server" in (TUTORIAL / page).read_text() and shutil.which("redis-server") is None:
        pytest.skip("needs redis-server")
    screens = []
    for _, name, *words in commands(page):
        given = words
        if "--rounds" in words:
            where = words.index("--rounds") + 1
            given = [*words[:where], str(min(int(words[where]), MOST_ROUNDS)), *words[where + 1 :]]
        elif name in SHORTER:
            where = words.index("--") if "--" in words else len(words)
            given = [*words[:where], *SHORTER[name], *words[where:]]
        done = subprocess.run(
            [sys.executable, "-m", "weighbridge", name, *given],
            cwd=folder, env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        if name == "explain" and done.returncode == NOTHING_TO_EXPLAIN:
            pytest.skip(f"a busy machine: {done.stderr}")
        accepted = {"gate": (0, 10, 11, 12), "clean": (0, 1), "explain": (0, 3)}.get(name, (0,))
        assert done.returncode in accepted, (name, given, done.stdout, done.stderr)
        if name in ("weigh", "report"):
            screens.append(done.stdout)
    for screen in expected(page):
        assert any({*shape(screen)} <= {*shape(each)} for each in screens) or not screens, (screen, screens)
