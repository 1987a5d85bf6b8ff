"""The words of `weighbridge weigh`: what they make of a study, and what is wrong with them."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from weighbridge.cli.app import app
from weighbridge.study.loader import load


def saved(tmp_path: Path, *words: str):
    file = tmp_path / "mine.yaml"
    done = CliRunner().invoke(app, ["weigh", "--save", str(file), *words])
    assert done.exit_code == 0, done.output
    return load(str(file))


def test_what_is_saved_is_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/opt/mine:/usr/bin")
    monkeypatch.setenv("TOKEN", "secret")
    monkeypatch.chdir(tmp_path)
    study = saved(
        tmp_path, "--in", "host,bridge", "-L", "n=1,2", "--metric", "rps=json:$.a[?@.b=='x,y'],higher,1/s",
        "--within", "30s", "--", "./load", "-n", "{n}",
    )  # fmt: skip
    assert [arm.name for arm in study.arms] == ["native", "host", "bridge", "native-again"]
    assert study.file.userland.model_dump()["folder"] == str(tmp_path)
    assert study.file.userland.model_dump()["env"]["PATH"] == "/opt/mine:/usr/bin"
    assert "TOKEN" not in study.text and "secret" not in study.text
    assert study.file.repetitions.within == 30
    assert len(study.cells) == 2


def test_a_variable_is_handed_on_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASKED", "for")
    study = saved(tmp_path, "-e", "ASKED", "-e", "OTHER=a=b", "--", "true")
    env = study.file.userland.model_dump()["env"]
    assert (env["ASKED"], env["OTHER"]) == ("for", "a=b")


@pytest.mark.parametrize(
    "words",
    [
        ["--parameter", "size", "--", "true"],
        ["--parameter", "=1,2", "--", "true"],
        ["--metric", "rps", "--", "true"],
        ["--metric", "rps=json:$.a,upwards,1/s", "--", "true"],
        ["--metric", "rps=xml:/a,higher,1/s", "--", "true"],
        ["--env", "NOT_THERE_AT_ALL", "--", "true"],
        ["--env", "A-B=1", "--", "true"],
    ],
)
def test_wrong_words_are_a_wrong_command_line(words: list[str], capsys: pytest.CaptureFixture[str]):
    done = CliRunner().invoke(app, ["weigh", *words])
    assert done.exit_code == 2
    assert len(capsys.readouterr().err.strip().splitlines() or done.output.strip().splitlines()) == 1


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text("mine")
    done = CliRunner().invoke(app, ["weigh", "--save", str(tmp_path / "mine.yaml"), "--", "true"])
    assert done.exception is not None and "exists already" in str(done.exception)
    assert (tmp_path / "mine.yaml").read_text() == "mine"
