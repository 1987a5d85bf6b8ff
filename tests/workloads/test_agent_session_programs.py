"""The scripts of an agent session, run for real: the same repository everywhere, and a session leaves it so."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from weighbridge.model.command import SITE_ENV, Command, Completed
from weighbridge.model.measurement import ProgramFailed
from weighbridge.workloads.agent_session import PLUGIN
from weighbridge.workloads.agent_session.session import PROGRAMS, STEPS

from .captured import AT

OPTIONS = PLUGIN.options(sessions=1)
MISSING = [program for program in PROGRAMS if shutil.which(program, path=SITE_ENV["PATH"]) is None]
pytestmark = [
    pytest.mark.real,
    pytest.mark.side_by_side,
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
]


class Place:
    """A folder of data and the scripts, in place of a site's."""

    def __init__(self, folder: Path) -> None:
        self.repository, self._scripts = folder / "data/agent-session", folder / "scripts"
        self._scripts.mkdir(parents=True)
        for path, data in PLUGIN.files("solo", OPTIONS, AT).items():
            (self._scripts / Path(path).name).write_bytes(data)

    def run(self, command: Command, path: str = SITE_ENV["PATH"]) -> Completed:
        """Run a command of the plug-in here. It has only the variables that it gets in a site."""
        moved = {"/tmp/weighbridge": f"{self._scripts}/weighbridge", "/srv/agent-session": str(self.repository)}
        argv = [re.sub("|".join(moved), lambda found: moved[found[0]], word) for word in command.argv]
        env = {**SITE_ENV, **command.env, "PATH": path}
        done = subprocess.run(argv, env=env, capture_output=True, timeout=600, check=False)
        return Completed(command.argv, done.returncode, done.stdout, done.stderr, 1.0)

    def must(self, command: Command) -> Completed:
        """Run a command, which succeeds."""
        done = self.run(command)
        assert done.returncode == 0, done
        return done


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    found = Place(tmp_path_factory.mktemp("agent"))
    found.must(PLUGIN.prepare(OPTIONS, AT))
    return found


@pytest.fixture(autouse=True)
def _restored(place: Place) -> None:
    place.must(PLUGIN.restore(OPTIONS, AT))


def test_the_repository_has_the_same_digest_twice(place: Place, tmp_path: Path):
    other = Place(tmp_path)
    other.must(PLUGIN.prepare(OPTIONS, AT))
    for each in (place, other):
        each.must(PLUGIN.check(OPTIONS, AT))
    assert place.repository != other.repository


def test_a_session_is_measured_and_leaves_the_repository_as_it_was(place: Place):
    done = place.must(PLUGIN.command("solo", OPTIONS, AT))
    result = PLUGIN.parse(OPTIONS, {"solo": done})
    assert [each.metric.name for each in result.measurements] == ["session", *STEPS]
    assert all(each.value > 0 for each in result.measurements)
    place.must(PLUGIN.check(OPTIONS, AT))
    status = ("git", "-c", "safe.directory=*", "-C", str(place.repository), "status", "--porcelain", "--ignored")
    assert subprocess.run(status, capture_output=True, check=True).stdout == b""


def test_a_changed_file_fails_the_check_until_the_repository_is_restored(place: Place):
    (place.repository / "src/harbour/base.py").write_text("LIMIT = 1\n")
    done = place.run(PLUGIN.check(OPTIONS, AT))
    assert done.returncode == 1
    assert re.fullmatch(
        "the repository is not as it was made: its digest is [0-9a-f]{64}, not [0-9a-f]{64}", done.last_words
    )
    place.must(PLUGIN.restore(OPTIONS, AT))
    place.must(PLUGIN.check(OPTIONS, AT))


def test_git_does_not_read_unchanged_files_again(place: Place):
    """Or git status would do more work in some sessions than in others."""
    index = place.repository / ".git/index"
    before = index.read_bytes()
    newest = max(
        path.stat().st_mtime for path in place.repository.rglob("*.*") if ".git" not in path.parts and path.is_file()
    )
    assert newest < index.stat().st_mtime - 60
    place.must(PLUGIN.command("solo", PLUGIN.options(sessions=2), AT))
    place.must(PLUGIN.restore(OPTIONS, AT))
    place.must(PLUGIN.check(OPTIONS, AT))
    assert len(index.read_bytes()) == len(before)


def test_a_program_that_is_missing_is_named(place: Place, tmp_path: Path):
    for program in ("git", "python3", "find", "sed", "ls", "cat"):
        (tmp_path / program).symlink_to(os.path.realpath(shutil.which(program, path=SITE_ENV["PATH"]) or ""))
    refused = place.run(PLUGIN.prepare(OPTIONS, AT), str(tmp_path))
    assert refused.last_words == "the session needs programs that are not installed: rg, cc, make, node"
    with pytest.raises(ProgramFailed, match="step search: rg cannot be started: No such file or directory"):
        PLUGIN.parse(OPTIONS, {"solo": place.run(PLUGIN.command("solo", OPTIONS, AT), str(tmp_path))})


def test_a_unit_test_that_fails_fails_the_trial(place: Place):
    (test, *_) = sorted(place.repository.glob("tests/test_00_*.py"))
    test.write_text(test.read_text().replace("LIMITS, [", "LIMITS, [7, "))
    with pytest.raises(ProgramFailed, match=r"step python_tests: .* exited with code 1: FAILED \(failures=20\)"):
        PLUGIN.parse(OPTIONS, {"solo": place.run(PLUGIN.command("solo", OPTIONS, AT))})
