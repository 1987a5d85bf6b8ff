"""An engine in a host of ours: started once more where its containerd was late, and for no other reason."""

from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.engines import hosted
from weighbridge.engines.settings import USUAL, Settings
from weighbridge.errors import Unavailable

RUN = SimpleNamespace(id="r", say=print, during=nullcontext, runtimes=())
LATE = Unavailable("dockerd did not start: failed to start containerd: timeout waiting for containerd to start")


class Host:
    """A host on which every command succeeds; counts the engines that were started."""

    name = "lab"

    def __init__(self) -> None:
        self.started = 0
        self.argv: tuple[str, ...] = ()

    def run(self, command: Any) -> Any:
        return SimpleNamespace(returncode=0, last_words="")

    def start(self, command: Any) -> Any:
        self.started += 1
        self.argv = command.argv
        return SimpleNamespace(stop=lambda: None)

    def reach(self, path: str) -> Path | None:
        return None

    @contextmanager
    def engine_folder(self) -> Any:
        yield "/data"


def engines_started(monkeypatch: pytest.MonkeyPatch, *outcomes: Exception | None) -> int:
    """Start an engine whose attempts end so; how many were started, each by the launcher: on all CPUs of its host."""
    left, host = list(outcomes), Host()

    def answer(*_: object) -> Any:
        if (error := left.pop(0)) is not None:
            raise error
        return SimpleNamespace(api=SimpleNamespace(containers=lambda **_: []))

    monkeypatch.setattr(hosted, "await_answer", answer)
    monkeypatch.setattr(hosted, "within", lambda its_host, _, group, *argv: ("launcher", its_host.name, *argv))
    with hosted.hosted_engine(RUN, host, USUAL):  # type: ignore[arg-type]
        pass
    assert host.argv[:3] == ("launcher", "lab", "env")
    return host.started


def test_it_is_started_once_more_where_containerd_was_late(monkeypatch: pytest.MonkeyPatch):
    assert engines_started(monkeypatch, None) == 1
    assert engines_started(monkeypatch, LATE, None) == 2


@pytest.mark.parametrize("outcomes", [(LATE, LATE), (Unavailable("dockerd did not start: no space left"),)])
def test_else_it_is_refused(monkeypatch: pytest.MonkeyPatch, outcomes: tuple[Exception, ...]):
    with raises_sentence(Unavailable):
        engines_started(monkeypatch, *outcomes)


def test_a_program_that_the_host_does_not_have_is_told():
    host = Host()
    host.run = lambda command: SimpleNamespace(returncode=127, last_words="")  # type: ignore[method-assign]
    with (
        raises_sentence(Unavailable),
        hosted.hosted_engine(RUN, host, Settings(dockerd="/mnt/x/dockerd")),  # type: ignore[arg-type]
    ):
        pass
