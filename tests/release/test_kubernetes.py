"""`make kubernetes`: what is built once, under which key, and what is left where that fails."""

import re
from pathlib import Path

import pytest

from weighbridge.errors import Unavailable, UserlandError
from weighbridge.model.command import Command, Completed

from .released import ROOT, script

build = script("kubernetes/build")
KUBERNETES, KUBE_ROUTER = build.PROJECTS
VERSIONS = {"kubernetes": "v1.35.4", "kube-router": "v2.1.0"}


class Go:
    """Stands for the compiler: its programs are files that say which version they call themselves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, calls_itself: str = "", fails_at: str = "") -> None:
        self.built: list[str] = []
        self.fails_at, self.calls_itself, self.version = fails_at, calls_itself, "go1.26.8"
        monkeypatch.setattr(build, "_COMPILER", self)
        monkeypatch.setattr(build, "which", lambda _: "/usr/bin/go")
        monkeypatch.setattr(build, "output", lambda _: self.version)
        monkeypatch.setattr(build, "run", self.answer)

    def output(self, folder: Path, what: str, *words: str) -> str:
        program = Path(words[words.index("-o") + 1])
        if program.name == self.fails_at:
            raise UserlandError("go build failed: it does not compile")
        linked = next(word for word in words if word.startswith("-ldflags"))
        (itself,) = re.findall(r"ersion=(\S+)", linked)
        program.write_text(f"{program.name} {self.calls_itself or itself}\n{linked}\n")
        self.built.append(program.name)
        return ""

    def answer(self, command: Command) -> Completed:
        """Some say their version to standard error."""
        return Completed(command.argv, 0, b"", Path(command.argv[0]).read_bytes().splitlines()[0], 0.1)


def built(cache: Path) -> list[str]:
    said: list[str] = []
    for project in build.PROJECTS:
        build.ensure(project, cache, said.append)
    return said


def test_every_program_is_built_once_in_the_version_of_go_mod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    go = Go(monkeypatch)
    assert {project.name: project.version for project in build.PROJECTS} == VERSIONS
    assert build.programs(tmp_path) is None
    assert len(built(tmp_path)) == len(go.built) + len(build.PROJECTS), "each is told"
    programs = build.programs(tmp_path)
    assert {*programs} == {*go.built} and {"kubectl", "kubelet", "kube-apiserver", "kube-router"} < {*programs}
    assert all(path.is_file() for path in programs.values())
    assert "version.gitVersion=v1.35.4" in programs["kubelet"].read_text()
    assert built(tmp_path) == [] and len(go.built) == len(programs), "a second call does nothing"


def test_a_build_that_fails_leaves_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    go = Go(monkeypatch, fails_at="kube-scheduler")
    with pytest.raises(UserlandError, match="it does not compile"):
        built(tmp_path)
    assert go.built and build.programs(tmp_path) is None
    assert [path.name for path in (tmp_path / "programs").iterdir()] == [f"{KUBERNETES.key}.lock"]


def test_a_program_of_another_version_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Go(monkeypatch, calls_itself="v0.0.0-master+$Format:%H$")
    with pytest.raises(UserlandError, match=r"v1\.35\.4"):
        built(tmp_path)
    assert build.programs(tmp_path) is None


def test_a_go_that_is_too_old_is_refused_before_anything_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    go = Go(monkeypatch)
    go.version = "go1.19.8"
    with pytest.raises(Unavailable, match=r"kubernetes needs Go 1\.25 or later, and this is go1\.19\.8"):
        built(tmp_path)
    monkeypatch.setattr(build, "which", lambda _: None)
    with pytest.raises(Unavailable, match="is not installed"):
        built(tmp_path)
    assert go.built == []


def test_sums_and_versions_are_of_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    before = KUBERNETES.key, KUBE_ROUTER.key
    for name in VERSIONS:
        (tmp_path / name).mkdir()
        for file in ("go.mod", "go.sum"):
            (tmp_path / name / file).write_bytes((ROOT / "scripts/kubernetes" / name / file).read_bytes())
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    assert (KUBERNETES.key, KUBE_ROUTER.key) == before
    with (tmp_path / "kubernetes/go.sum").open("a") as sums:
        sums.write("k8s.io/more v1.0.0 h1:=\n")
    assert KUBERNETES.key != before[0] and KUBE_ROUTER.key == before[1]
