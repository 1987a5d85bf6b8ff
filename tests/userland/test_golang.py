"""What is cached under which name, what is said where a program cannot be built, and what it was built of."""

from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.build_once import half_built
from weighbridge.errors import Unavailable, UserlandError
from weighbridge.model.command import Command, Completed
from weighbridge.model.userland import UserlandSpec
from weighbridge.userland import build, compiled, golang

CONTENTS = """weighbridge-one: go1.19.8
\tpath\tweighbridge-one
\tmod\tweighbridge-one\t(devel)\t
\tdep\tgithub.com/HdrHistogram/hdrhistogram-go\tv1.1.2\th1:5IcZpTvzydCQeHzK4Ef/D5rrSqwxob0t8PQPMybUNFM=
\tdep\tgolang.org/x/sys\tv0.12.0\th1:CM0HF96J0hcLAwsHPJZjfdNzs0gftsLfgKt57wWHJ0o=
\tbuild\tCGO_ENABLED=0
"""


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "golang"
    (folder / "one").mkdir(parents=True)
    (folder / "one/go.mod").write_text("module weighbridge-one\n")
    (folder / "one/main.go").write_text("package main\n")
    monkeypatch.setattr(golang, "PROJECTS", {"one": folder / "one"})
    return folder


def test_every_change_of_a_source_or_of_a_module_is_another_key(projects: Path):
    keys = {golang.key_of("one")}
    for file, text in (("main.go", "package main\n\n"), ("go.mod", "module m\n"), ("go.sum", "")):
        (projects / "one" / file).write_text(text)
        keys.add(golang.key_of("one"))
    assert len(keys) == 4
    assert len({build.key_of(UserlandSpec.of(["a"])), build.key_of(UserlandSpec.of(["a"], golang=["one"]))}) == 2


def test_a_userland_without_programs_keeps_its_key(projects: Path):
    assert build.key_of(UserlandSpec.of(["a"])) == build.key_of(UserlandSpec.of(["a"], golang=[""]))


def test_a_project_that_is_not_there(projects: Path):
    with raises_sentence(UserlandError):
        golang.key_of("two")


def test_the_project_of_this_package_pins_every_module():
    for project, folder in golang.PROJECTS.items():
        assert golang.key_of(project)
        assert "replace " not in (folder / "go.mod").read_text()
        assert (folder / "go.sum").read_text()


def test_without_go_one_sentence_says_what_helps(projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("shutil.which", lambda _, **__: None)
    assert golang.cannot_build([], tmp_path) is None
    with raises_sentence(Unavailable):
        golang.ensure("one", tmp_path, print)
    program = tmp_path / "programs" / golang.key_of("one") / "weighbridge-one"
    program.parent.mkdir(parents=True)
    program.touch()
    assert golang.cannot_build(["one"], tmp_path) is None
    assert golang.ensure("one", tmp_path, print) == program


def _answering(
    monkeypatch: pytest.MonkeyPatch, returncode: int, stderr: bytes, timed_out: bool = False
) -> list[Command]:
    asked: list[Command] = []

    def run(command: Command) -> Completed:
        asked.append(command)
        if "build" in command.argv and returncode == 0:
            Path(command.argv[command.argv.index("-o") + 1]).touch()
        return Completed(command.argv, returncode, CONTENTS.encode(), stderr, 1.0, timed_out)

    monkeypatch.setattr(compiled, "run", run)
    monkeypatch.setattr("shutil.which", lambda _, **__: "/usr/bin/go")
    return asked


def test_the_build_is_static_pinned_and_leaves_the_proxy_to_the_user(
    projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = _answering(monkeypatch, 0, b"")
    program = golang.ensure("one", tmp_path, print)
    assert program.name == "weighbridge-one"
    assert golang.versions(program)["go (compiler)"] == "1.19.8"
    command = asked[0]
    assert {"-mod=readonly", "-trimpath"} < set(command.argv)
    assert command.env["CGO_ENABLED"] == "0"
    assert command.env["GOTOOLCHAIN"] == "local"
    assert not {"GOPROXY", "GOSUMDB", "GOFLAGS"} & set(command.env)
    assert golang.ensure("one", tmp_path, print) == program
    assert len(asked) == 2, "built once; the other call asked what it was built of"


@pytest.mark.parametrize(
    "stderr",
    [
        b"go: downloading golang.org/x/sys v0.12.0\n"
            b"main.go:10:2: golang.org/x/sys@v0.12.0: Get \"https://proxy.invalid/x\": no such host\n",
        b"# github.com/some/module\n../mod/x.go:3:4: undefined: slices\nnote: module requires Go 1.21\n",
        b"# weighbridge-one\n./main.go:3:1: syntax error\n",
        b"go: updates to go.mod needed\n",
        b"",
    ],
)  # fmt: skip
def test_a_build_that_fails_is_told_in_one_line_and_leaves_nothing(
    projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: bytes
):
    _answering(monkeypatch, 1, stderr)
    with raises_sentence(UserlandError) as caught:
        golang.ensure("one", tmp_path, print)
    assert "\n" not in str(caught.value)
    assert [path.suffix for path in (tmp_path / "programs").iterdir()] == [".lock"]


def test_a_build_that_does_not_end(projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _answering(monkeypatch, -9, b"", timed_out=True)
    with raises_sentence(UserlandError):
        golang.ensure("one", tmp_path, print)


def test_half_built_programs_are_found(tmp_path: Path):
    (tmp_path / "programs/.building-abc").mkdir(parents=True)
    assert [path.name for path in half_built(tmp_path)] == [".building-abc"]


def test_what_a_program_is_built_of():
    assert golang.versions_in(CONTENTS) == {
        "go (compiler)": "1.19.8",
        "github.com/HdrHistogram/hdrhistogram-go (Go module)": "v1.1.2",
        "golang.org/x/sys (Go module)": "v0.12.0",
    }
    assert golang.versions_in("") == {"go (compiler)": ""}
