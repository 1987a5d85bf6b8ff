"""The first signal ends the work in good order; further ones cannot stop the tidying up."""

import os
import signal
from collections.abc import Iterator

import pytest

from weighbridge.errors import Interrupted
from weighbridge.runner import signals
from weighbridge.runner.signals import SIGNALS, be_silent, interruptible, shield


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    signals._State.received, signals._State.shielded = None, False


def send(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_raised_at_once(number: int):
    reached = False
    with pytest.raises(Interrupted) as caught, interruptible():
        send(number)
        reached = True
    assert not reached
    assert caught.value.exit_code == 128 + number


def test_no_handler_of_failures_swallows_it():
    with pytest.raises(Interrupted), interruptible():
        try:
            send()
        except Exception:
            pytest.fail("an interruption is no failure")


def test_without_a_signal_the_handlers_are_as_before():
    before = [signal.getsignal(number) for number in SIGNALS]
    with interruptible():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_an_inner_shield_ends_nothing():
    done = []
    with pytest.raises(Interrupted), interruptible(), shield():
        with shield():
            send()
        done.append("still shielded")
    assert done == ["still shielded"]


def test_further_signals_do_not_stop_the_tidying_up(capsys: pytest.CaptureFixture[str]):
    tidied = []
    with pytest.raises(Interrupted) as caught, interruptible():
        try:
            send(signal.SIGINT)
        finally:
            send(signal.SIGTERM)
            with shield():
                send(signal.SIGINT)
                tidied.append("closed")
            tidied.append("reported")
    assert tidied == ["closed", "reported"]
    assert caught.value.exit_code == 128 + signal.SIGINT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("cleaning up, please wait") == 2


def test_events_have_no_other_text_between_them(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weighbridge.runner.signals._State.silent", False)
    be_silent()
    with pytest.raises(Interrupted), interruptible(), shield():
        send()
        send()
    assert capsys.readouterr().err == ""


def test_a_failure_inside_a_shield_is_told_rather_than_the_signal():
    with pytest.raises(ValueError, match="full"), interruptible(), shield():
        send()
        raise ValueError("full")
