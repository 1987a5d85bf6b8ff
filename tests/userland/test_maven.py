"""What is cached under which name, and what is said where jars cannot be built."""

from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.build_once import half_built
from weighbridge.errors import Unavailable, UserlandError
from weighbridge.model.userland import UserlandSpec
from weighbridge.userland import build, maven


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "java"
    (folder / "one").mkdir(parents=True)
    (folder / "one/pom.xml").write_text("<project/>")
    (folder / "one/A.java").write_text("class A {}")
    monkeypatch.setattr(maven, "PROJECTS", {"one": folder / "one"})
    return folder


def test_every_change_of_the_pom_or_of_a_source_is_another_key(projects: Path):
    keys = {maven.key_of("one")}
    for file, text in (("A.java", "class B {}"), ("pom.xml", "<project></project>"), ("B.java", "")):
        (projects / "one" / file).write_text(text)
        keys.add(maven.key_of("one"))
    assert len(keys) == 4


def test_a_project_that_is_not_there(projects: Path):
    with raises_sentence(UserlandError):
        maven.key_of("two")


def test_a_userland_without_jars_keeps_its_key(projects: Path):
    assert (
        build.key_of(UserlandSpec.of(["a"]))
        == build.key_of(UserlandSpec.of(["a"], [""]))
        != build.key_of(UserlandSpec.of(["a"], ["one"]))
    )


def test_without_maven_one_sentence_says_what_helps(projects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(maven.shutil, "which", lambda _: None)
    assert maven.cannot_build([], tmp_path) is None
    with raises_sentence(Unavailable):
        maven.ensure("one", tmp_path, print)
    (tmp_path / "jars" / maven.key_of("one") / "one").mkdir(parents=True)
    assert maven.cannot_build(["one"], tmp_path) is None
    assert maven.ensure("one", tmp_path, print).name == "one"


def test_half_built_jars_are_found(tmp_path: Path):
    (tmp_path / "jars/.building-abc").mkdir(parents=True)
    (tmp_path / "userlands/.building-def").mkdir(parents=True)
    assert {path.name for path in half_built(tmp_path)} == {".building-abc", ".building-def"}


def test_versions_come_from_the_names_of_the_jars(tmp_path: Path):
    for name in ("coherence-22.06.15.jar", "javassist-3.29.2-GA.jar", "weighbridge-coherence-1.jar"):
        (tmp_path / name).touch()
    assert maven.versions(tmp_path) == {
        "coherence (jar)": "22.06.15", "javassist (jar)": "3.29.2-GA", "weighbridge-coherence (jar)": "1",
    }  # fmt: skip
