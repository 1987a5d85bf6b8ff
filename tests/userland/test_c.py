"""What is cached under which name, what is said where a program cannot be built, and what built it."""

import hashlib
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.errors import Unavailable, UserlandError
from weighbridge.model.command import Command, Completed
from weighbridge.model.userland import UserlandSpec
from weighbridge.userland import build, c, compiled


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "c"
    (folder / "one").mkdir(parents=True)
    (folder / "one/main.c").write_text("int main(void) { return 0; }\n")
    monkeypatch.setattr(c, "PROJECTS", {"one": folder / "one"})
    return folder


def test_every_change_of_a_source_is_another_key(projects: Path):
    keys = {c.key_of("one")}
    for file, text in (("main.c", "int main(void) { return 1; }\n"), ("other.h", ""), ("other.c", "")):
        (projects / "one" / file).write_text(text)
        keys.add(c.key_of("one"))
    assert len(keys) == 4
    assert len({build.key_of(UserlandSpec.of(["a"])), build.key_of(UserlandSpec.of(["a"], c=["one"]))}) == 2


def test_a_userland_without_programs_keeps_its_key(projects: Path):
    assert build.key_of(UserlandSpec.of(["a"])) == build.key_of(UserlandSpec.of(["a"], c=[""]))


def test_a_union_has_the_programs_of_each():
    union = UserlandSpec.union([UserlandSpec.of(c=["two"]), UserlandSpec.of(c=["one", ""]), UserlandSpec.of(["a"])])
    assert union == UserlandSpec(("a",), (), (), ("one", "two"))


def test_a_project_that_is_not_there(projects: Path):
    with raises_sentence(UserlandError):
        c.key_of("two")


def test_without_a_compiler_one_sentence_says_what_helps(
    projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("shutil.which", lambda _, **__: None)
    assert c.cannot_build([], tmp_path) is None
    with raises_sentence(Unavailable):
        c.ensure("one", tmp_path, print)
    program = tmp_path / "programs" / c.key_of("one") / "weighbridge-one"
    program.parent.mkdir(parents=True)
    program.touch()
    assert c.cannot_build(["one"], tmp_path) is None
    assert c.ensure("one", tmp_path, print) == program


def _answering(
    monkeypatch: pytest.MonkeyPatch, returncode: int, stderr: bytes, timed_out: bool = False
) -> list[Command]:
    asked: list[Command] = []

    def run(command: Command) -> Completed:
        asked.append(command)
        if "-o" in command.argv and returncode == 0:
            Path(command.argv[command.argv.index("-o") + 1]).write_bytes(b"program")
        return Completed(command.argv, returncode, b"cc (Debian) 12.2.0\nFree\n", stderr, 1.0, timed_out)

    monkeypatch.setattr(compiled, "run", run)
    monkeypatch.setattr("shutil.which", lambda _, **__: "/usr/bin/cc")
    return asked


def test_the_build_is_static_once_and_tells_its_compiler(
    projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (projects / "one/another.c").touch()
    asked = _answering(monkeypatch, 0, b"")
    program = c.ensure("one", tmp_path, print)
    assert program.name == "weighbridge-one"
    assert c.versions(program) == {
        "cc (compiler)": "cc (Debian) 12.2.0",
        "weighbridge-one (C program)": hashlib.sha256(b"program").hexdigest()[:16],
    }
    assert "-static" in asked[0].argv and not any("march" in option for option in asked[0].argv)
    assert asked[0].argv[-2:] == ("another.c", "main.c")
    assert c.ensure("one", tmp_path, print) == program
    assert len(asked) == 2, "built once; the other call asked for the compiler's version"


@pytest.mark.parametrize(
    "stderr",
    [
        b"main.c: In function 'main':\nmain.c:1:26: error: expected ';'\n  1 | int\n",
        b"/usr/bin/ld: /tmp/x.o: in function `main':\nmain.c:(.text+0x5): undefined reference to `other'\n"
         b"collect2: error: ld returned 1 exit status\n",
        b"/usr/bin/ld: cannot find -lc\ncollect2: error: ld returned 1 exit status\n",
        b"",
    ],
)  # fmt: skip
def test_a_build_that_fails_is_told_in_one_line_and_leaves_nothing(
    projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: bytes
):
    _answering(monkeypatch, 1, stderr)
    with raises_sentence(UserlandError) as caught:
        c.ensure("one", tmp_path, print)
    assert "\n" not in str(caught.value)
    assert [path.suffix for path in (tmp_path / "programs").iterdir()] == [".lock"]


def test_a_build_that_does_not_end(projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _answering(monkeypatch, -9, b"", timed_out=True)
    with raises_sentence(UserlandError):
        c.ensure("one", tmp_path, print)
