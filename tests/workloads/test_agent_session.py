"""The agent session: its repository is the same each time, and a session that goes wrong is told in one sentence."""

import hashlib
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.workloads import agent_session
from weighbridge.workloads.agent_session import repository, session

from .captured import AT, data, result

PLUGIN = agent_session.PLUGIN
PATCH = PLUGIN.files("solo", PLUGIN.options(), AT)["/tmp/weighbridge-agent-fix.patch"].decode()


def test_the_repository_is_the_same_each_time():
    digests = set()
    for _ in range(2):
        words = repository.Words(repository.SEED)
        files = repository.contents(words)
        assert len(files) == agent_session.FILES
        digests.add(hashlib.sha256(b"".join(repository.history(words, files))).hexdigest())
    assert digests == {"571ef39e8fb3e7ad881f8ea226c83ab2274517af4624e3a50effabdd8de2f0b5"}


def test_another_seed_gives_another_repository():
    first, second = (repository.contents(repository.Words(seed)) for seed in (1, 2))
    assert len(first) == len(second)
    assert first != second


def test_its_files_are_small_and_many():
    sizes = [len(text) for text in repository.contents(repository.Words(repository.SEED)).values()]
    assert max(sizes) < 8_000
    assert sum(sizes) < PLUGIN.room(PLUGIN.options())


def test_a_session_reads_and_changes_files_that_are_there():
    files = repository.contents(repository.Words(repository.SEED))
    read = {argv[-1] for step, argv in session.COMMANDS if step in ("read", "javascript_check")}
    assert {*session.EDITED, *read} <= files.keys()
    patched = {*re.findall(r"^--- a/(.+)$", PATCH, re.MULTILINE)}
    edited = {argv[-1] for step, argv in session.COMMANDS if argv[:2] == ("sed", "--in-place")}
    assert patched | edited == {*session.EDITED}
    for section in re.split(r"^--- ", PATCH, flags=re.MULTILINE)[1:]:
        name, *lines = section.splitlines()
        before = [line[1:] for line in lines if line[:1] in (" ", "-")]
        assert name == "/dev/null" or {*before} <= {*files[name.removeprefix("a/")].splitlines()}


def test_its_files_are_next_to_each_other_in_a_folder_that_is_there():
    files = PLUGIN.files("solo", PLUGIN.options(), AT)
    assert {path.rpartition("/")[0] for path in files} == {"/tmp"}
    assert Path(session.PATCH).name in {Path(path).name for path in files}


def test_each_step_is_a_metric_and_they_add_up_to_the_session():
    names = [metric.name for metric in PLUGIN.metrics(PLUGIN.options())]
    assert names == ["session", *session.EXPECTED]
    found = {
        each.metric.name: each.value for each in result("agent-session", {}, data("agent-session.txt")).measurements
    }
    assert found.pop("session") == pytest.approx(sum(found.values()) / 1000)


def test_the_work_is_that_of_all_sessions():
    both = result("agent-session", {}, data("agent-session.txt"))
    assert both.work_s == pytest.approx(2 * both.measurements[0].value)


def test_git_has_no_settings_of_a_user_and_no_network():
    for command in (PLUGIN.prepare(PLUGIN.options(), AT), PLUGIN.command("solo", PLUGIN.options(), AT)):
        assert command.env["HOME"] == "/nonexistent"
        assert command.env["GIT_CONFIG_GLOBAL"] == "/dev/null"
        assert command.env["GIT_CONFIG_NOSYSTEM"] == "1"
        assert command.env["GIT_ALLOW_PROTOCOL"] == "none"


@given(
    lines=st.lists(st.binary(max_size=20).filter(lambda line: not {*b"\n\r\v\f\x1c\x1d\x1e\x85"} & {*line})),
    seed=st.integers(),
)
def test_a_checksum_does_not_depend_on_the_order_of_lines(lines: list[bytes], seed: int):
    other = random.Random(seed).sample(lines, len(lines))
    whole, mixed = (session.checksum(b"".join(line + b"\n" for line in each)) for each in (lines, other))
    assert whole == mixed
    assert whole[0] == len(lines)


def test_a_checksum_ignores_only_how_long_the_tests_took():
    first, second, third = (
        session.checksum(f"Ran {n} tests in {s}s\n".encode()) for n, s in ((3, 0.1), (3, 2.5), (4, 0.1))
    )
    assert first == second
    assert first != third


def _runs(monkeypatch: pytest.MonkeyPatch, code: int, printed: bytes, *, ok: str = "") -> str:
    """Return why a session fails in which every command ends so, but for those of one step."""
    monkeypatch.setattr(session, "EXPECTED", dict.fromkeys(session.STEPS, (0, 0)))
    steps = iter([step for step, _ in session.COMMANDS])
    monkeypatch.setattr(session, "timed", lambda *_: (5, 0, b"") if next(steps) == ok else (5, code, printed))
    with pytest.raises(SystemExit) as caught:
        session.session()
    return str(caught.value)


def test_a_command_that_fails_is_named_with_its_last_words(monkeypatch: pytest.MonkeyPatch):
    why = _runs(monkeypatch, 1, b"first\nno such luck\n", ok="git_status")
    assert why == "step find: 'ls src/harbour' exited with code 1: no such luck"
    assert _runs(monkeypatch, -9, b"").endswith("exited with code -9: it printed nothing")


def test_another_output_than_expected_is_told(monkeypatch: pytest.MonkeyPatch):
    why = _runs(monkeypatch, 0, b"x\n")
    assert (
        why == "step git_status: its commands printed 4 lines with checksum 3149660498, not 0 lines with checksum 0"
    )


def test_a_search_may_find_nothing(monkeypatch: pytest.MonkeyPatch):
    codes = {"search": 1}
    steps = iter([step for step, _ in session.COMMANDS])
    monkeypatch.setattr(session, "EXPECTED", dict.fromkeys(session.STEPS, (0, 0)))
    monkeypatch.setattr(session, "timed", lambda *_: (5, codes.get(next(steps), 0), b""))
    assert session.session()["search"] == (6, 30, 0)


def test_programs_that_are_missing_are_named_before_anything_is_made(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(repository.shutil, "which", lambda program: None if program in ("rg", "node") else program)
    with pytest.raises(SystemExit) as caught:
        repository.main("make", "/nonexistent/folder", *session.PROGRAMS)
    assert str(caught.value) == "the session needs programs that are not installed: rg, node"
