"""Docker Compose is asked for the normalised text of a file: how, and what is told where it gives none."""

from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.errors import StudyError, Unavailable
from weighbridge.model.command import Command, Completed
from weighbridge.runner.compose_file import normalised


class Compose:
    """Answers as Docker Compose does, and notes what it was asked."""

    def __init__(
        self, returncode: int = 0, stdout: bytes = b"", stderr: bytes = b"", timed_out: bool = False
    ) -> None:
        self.asked: list[tuple[str, ...]] = []
        self._answer = (returncode, stdout, stderr, 0.1, timed_out)

    def __call__(self, command: Command) -> Completed:
        self.asked.append(command.argv)
        return Completed(command.argv, *self._answer)


def installed(*programs: str):
    return lambda program: f"/usr/bin/{program}" if program in programs else None


@pytest.mark.parametrize(
    ("programs", "argv"),
    [
        (("docker", "docker-compose"), ("/usr/bin/docker-compose", "-f", "a b.yml", "config")),
        (("docker",), ("/usr/bin/docker", "compose", "-f", "a b.yml", "config")),
    ],
)
def test_it_is_asked_with_an_argument_list(programs: tuple[str, ...], argv: tuple[str, ...]):
    compose = Compose(stdout=b"services: {}\n")
    assert normalised("a b.yml", compose, installed(*programs)) == "services: {}\n"
    assert compose.asked == [argv]


def test_its_reason_is_told_in_one_line():
    compose = Compose(1, b"", b"ERROR: The Compose file './x' is invalid because:\n  services.a.imag is unknown\n")
    with raises_sentence(StudyError) as error:
        normalised("x", compose, installed("docker-compose"))
    assert "\n" not in str(error.value)


def test_none_is_told():
    with pytest.raises(Unavailable, match="apt-get install docker-compose"):
        normalised("x", Compose(), installed())


def test_docker_without_its_plug_in_is_told_like_none():
    compose = Compose(1, b"", b"unknown shorthand flag: 'f' in -f\n\nUsage:  docker [OPTIONS] COMMAND [ARG...]\n")
    with pytest.raises(Unavailable, match="apt-get install docker-compose"):
        normalised("x", compose, installed("docker"))


def test_one_that_does_not_end_is_told():
    with raises_sentence(StudyError):
        normalised("x", Compose(-9, timed_out=True), installed("docker-compose"))


def test_its_reason_is_told_without_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONE", "canary 1")
    (tmp_path / ".env").write_text("# comment\nTWO='canary-2'\nUNUSED=is\n")
    (tmp_path / "compose.yaml").write_text("services: {a: {read_only: $ONE, init: '${TWO:-true}'}}")
    said = b'service.a.read_only: "canary 1" is not a boolean, nor is canary-2: canary-22 is neither'
    with raises_sentence(StudyError):
        normalised("compose.yaml", Compose(1, b"", said), installed("docker-compose"))
