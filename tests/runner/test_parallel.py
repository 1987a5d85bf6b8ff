"""Hosts and sites are opened at the same time, in order where they must be, and closed if one fails."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from weighbridge.errors import Cancelled, Interrupted, Unavailable
from weighbridge.linux import cancellation
from weighbridge.model.host import RunContext
from weighbridge.model.names import RunId
from weighbridge.model.once import Once
from weighbridge.model.setup import SetupStep
from weighbridge.runner.parallel import THREADS, in_groups, openers
from weighbridge.runner.signals import interruptible

LONG_S = 60.0
"""Longer than any test: what waits so long is woken, or the test fails."""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunContext]:
    with ExitStack() as stack:
        yield RunContext(RunId("0123456789ab"), tmp_path, tmp_path, stack)


def waits_for_ever() -> None:
    cancellation.wait(threading.Event(), LONG_S)


def test_tasks_run_at_the_same_time_and_results_keep_their_order(run: RunContext):
    together = threading.Barrier(THREADS)

    def task(number: int) -> Callable[[], int]:
        def meets() -> int:
            together.wait(LONG_S)
            return number

        return meets

    assert openers(run).run_all([task(number) for number in range(THREADS)]) == list(range(THREADS))


def test_no_more_threads_than_the_bound(run: RunContext):
    names: set[str] = set()
    openers(run).run_all([lambda: names.add(threading.current_thread().name)] * (5 * THREADS))
    assert 1 <= len(names) <= THREADS


def test_a_failure_ends_the_waits_of_the_others_and_is_the_error(run: RunContext):
    ended: list[str] = []

    def other() -> None:
        with contextmanager(noted)(ended):
            waits_for_ever()

    def fails() -> None:
        raise Unavailable("no bridge")

    with pytest.raises(Unavailable, match="no bridge"):
        openers(run).run_all([other, fails, *[other] * 20])
    assert len(ended) <= THREADS  # the rest never began


def noted(ended: list[str]) -> Iterator[None]:
    try:
        yield
    finally:
        cancellation.wait(threading.Event(), 0.0)  # cleanup can wait
        ended.append("cleaned up")


def test_of_several_failures_the_first_task_is_told(run: RunContext):
    both = threading.Barrier(2)

    def fails(why: str) -> Callable[[], None]:
        def task() -> None:
            both.wait(LONG_S)
            with cancellation.ignored():
                raise Unavailable(why)

        return task

    for _ in range(20):
        with pytest.raises(Unavailable, match="first"):
            openers(run).run_all([fails("first"), fails("second")])


def test_an_interrupt_ends_the_waits_and_waits_for_the_cleanup(run: RunContext):
    """The signal arrives in the main thread while all threads wait."""
    begun, ended = threading.Barrier(3), list[str]()

    def site() -> None:
        with contextmanager(noted)(ended):
            begun.wait(LONG_S)
            waits_for_ever()

    def user() -> None:
        begun.wait(LONG_S)
        os.kill(os.getpid(), signal.SIGINT)  # as the kernel does it: to the main thread

    with pytest.raises(Interrupted), interruptible():
        openers(run).run_all([site, site, user])
    assert ended == ["cleaned up"] * 2


def test_a_cancelled_thread_can_wait_in_its_cleanup():
    stop = cancellation.Cancellation()
    stop.request()
    with stop.heeded():
        with pytest.raises(Cancelled):
            cancellation.wait(threading.Event(), LONG_S)
        assert not cancellation.wait(threading.Event(), 0.0)
    stop.close()
    assert cancellation.descriptor() is None


def test_nothing_cancels_the_cleanup_after_an_error_of_its_own(run: RunContext):
    """The second failure arrives while the first task cleans up; the third task shows when it has arrived."""
    begun, arrived, ended = threading.Barrier(3), threading.Event(), list[bool]()

    def fails_first() -> None:
        try:
            begun.wait(LONG_S)
            raise Unavailable("first")
        finally:
            ended.append(cancellation.wait(arrived, LONG_S) and cancellation.descriptor() is None)

    def fails() -> None:
        begun.wait(LONG_S)
        raise Unavailable("second")

    def waits() -> None:
        begun.wait(LONG_S)
        try:
            waits_for_ever()
        finally:
            arrived.set()

    with pytest.raises(Unavailable, match="first"):
        openers(run).run_all([fails_first, fails, waits])
    assert ended == [True]


def test_groups_close_at_the_same_time_and_each_in_its_order(run: RunContext):
    together, closed = threading.Barrier(2), list[str]()
    first, second, other = ExitStack(), ExitStack(), ExitStack()
    for stack, name in ((first, "first"), (second, "second")):
        stack.callback(closed.append, name)
    first.callback(together.wait, LONG_S)
    other.callback(together.wait, LONG_S)
    openers(run).close_all([[first, second], [other], []])
    assert closed == ["first", "second"]


def test_all_is_closed_although_something_fails_to_close(run: RunContext):
    def fails() -> None:
        raise Unavailable("no bridge")

    closed, first, second, other = list[str](), ExitStack(), ExitStack(), ExitStack()
    first.callback(fails)
    second.callback(closed.append, "second")
    other.callback(closed.append, "other")
    with pytest.raises(Unavailable, match="no bridge"):
        openers(run).close_all([[first, second], [other]])
    assert sorted(closed) == ["other", "second"]


def test_what_has_an_order_is_one_task_and_the_longest_is_first():
    groups = in_groups(["a", "s1", "b", "s2"], lambda name: "swarm" if name.startswith("s") else "")
    assert groups == [["s1", "s2"], ["a"], ["b"]]


def test_a_shared_thing_is_made_once_and_closed_after_what_uses_it(run: RunContext):
    happened: list[str] = []
    together = threading.Barrier(2)

    @contextmanager
    def switch() -> Iterator[str]:
        happened.append("switch")
        yield "switch"
        happened.append("no switch")

    @contextmanager
    def host(name: str) -> Iterator[str]:
        together.wait(LONG_S)
        yield f"{name} on {run.share('switch', switch)}"
        happened.append(f"no {name}")

    with run.stack:
        tasks = [lambda name=name: run.share(name, lambda: host(name)) for name in ("a", "b")]
        assert openers(run).run_all(tasks) == ["a on switch", "b on switch"]
    assert happened[0] == "switch" and happened[-1] == "no switch" and sorted(happened[1:-1]) == ["no a", "no b"]


def test_the_next_thread_makes_what_the_first_could_not():
    once, tries = Once(), list[int]()

    def make() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise Unavailable("not yet")
        return "made"

    with pytest.raises(Unavailable):
        once.get("key", make)
    assert once.get("key", make) == once.get("key", make) == "made"
    assert len(tries) == 2


def test_the_innermost_step_of_each_thread_is_shown(run: RunContext):
    shown: list[list[str]] = []
    run.waits = lambda steps: shown.append([each.name for each in steps])
    both, done = threading.Barrier(2), threading.Barrier(2)

    def opens(host: str) -> Callable[[], None]:
        def task() -> None:
            with run.during(SetupStep("host", host)), run.during(SetupStep("engine", f"{host}-docker")):
                both.wait(LONG_S)
                done.wait(LONG_S)

        return task

    openers(run).run_all([opens("a"), opens("b")])
    assert ["a-docker", "b-docker"] in [sorted(names) for names in shown]
    assert run._steps and not any(run._steps.values())
