"""Freezing a container: what Docker may refuse once, and what it refuses for good."""

from types import SimpleNamespace

import pytest
from docker.errors import APIError

from weighbridge.engines import container
from weighbridge.errors import Unavailable

BUSY = "Cannot pause container b1: OCI runtime pause failed: unable to freeze: unknown"


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the engine still refuses with, the last first; time passes by sleeping alone."""
    now = SimpleNamespace(t=0.0)
    clock = SimpleNamespace(monotonic=lambda: now.t, sleep=lambda s: setattr(now, "t", now.t + s))
    monkeypatch.setattr(container, "time", clock)
    return []


def api(refusals: list[str], asked: list[str]) -> SimpleNamespace:
    def pause(name: str) -> None:
        asked.append(name)
        if refusals:
            raise APIError("500 Server Error", explanation=refusals.pop())

    return SimpleNamespace(pause=pause)


def test_what_runc_could_not_freeze_is_tried_again(refusals: list[str]):
    refusals += [BUSY, BUSY]
    asked: list[str] = []
    container.pause(api(refusals, asked), "b1", "bridge")
    assert asked == ["b1"] * 3


def test_for_some_seconds(refusals: list[str]):
    refusals += [BUSY] * 1000
    with pytest.raises(Unavailable, match=r"^bridge: pause: Docker refuses: .*unable to freeze"):
        container.pause(api(refusals, []), "b1", "bridge")
    assert refusals


def test_any_other_refusal_is_final(refusals: list[str]):
    refusals += ["it is paused already"]
    asked: list[str] = []
    with pytest.raises(Unavailable, match="it is paused already"):
        container.pause(api(refusals, asked), "b1", "bridge")
    assert asked == ["b1"]
