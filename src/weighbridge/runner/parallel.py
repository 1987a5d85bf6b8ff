"""Opens and closes what does not depend on each other at the same time, in a few threads."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from typing import TypeVar

from weighbridge.errors import Cancelled
from weighbridge.linux.cancellation import Cancellation
from weighbridge.model.host import RunContext
from weighbridge.runner.signals import shield

THREADS = 6
"""Opening mostly waits for other processes. More of them at the same time slow down emulated guests."""
Result = TypeVar("Result")
Item = TypeVar("Item")


class Openers:
    """The threads that open and close hosts and sites.

    They end with the run, because the kernel can end a program with the thread that started it (PR_SET_PDEATHSIG).
    """

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    def run_all(self, tasks: Sequence[Callable[[], Result]]) -> list[Result]:
        """Run the tasks, and return their results in the same order. Only the main thread can call this.

        If one raises, the others are cancelled, and the error is raised when all have ended. Also on Ctrl-C it first
        waits for all. Only a call of the Docker SDK is not cancelled; it ends by its time-out.
        """
        futures: list[Future[Result]] = []
        with closing(Cancellation()) as cancellation:
            try:
                with shield():
                    futures = [self._threads.submit(_heeding, cancellation, task) for task in tasks]
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                with shield():
                    if waiting := [future for future in futures if not (future.cancel() or future.done())]:
                        cancellation.request()
                        wait(waiting)
        errors = [error for future in futures if not future.cancelled() and (error := future.exception()) is not None]
        for error in sorted(errors, key=lambda each: isinstance(each, Cancelled)):
            raise error
        return [future.result() for future in futures]

    def close_all(self, groups: Iterable[Sequence[ExitStack]]) -> None:
        """Close the stacks of a group one after the other, and the groups at the same time.

        Nothing cancels it, also not Ctrl-C. If stacks raise, the first error is raised when all are closed.
        """
        with shield():
            futures = [self._threads.submit(_close_in_order, group) for group in groups]
            wait(futures)
        for future in futures:
            future.result()


def _heeding(cancellation: Cancellation, task: Callable[[], Result]) -> Result:
    with cancellation.heeded():
        cancellation.check()
        return task()


def _close_in_order(stacks: Sequence[ExitStack]) -> None:
    with ExitStack() as closed:
        for each in reversed(stacks):
            closed.push(each)


def openers(run: RunContext) -> Openers:
    """Return the threads of a run."""
    return run.share("threads", _threads)


@contextmanager
def _threads() -> Iterator[Openers]:
    with ThreadPoolExecutor(THREADS, "opens") as threads:
        yield Openers(threads)


def in_groups(items: Iterable[Item], group: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Return one list for each group, in the order of its items; each item of the group "" has its own list.

    The longest list comes first, because it probably needs the most time.
    """
    groups: dict[Hashable, list[Item]] = {}
    for number, item in enumerate(items):
        groups.setdefault(group(item) or number, []).append(item)
    return sorted(groups.values(), key=len, reverse=True)
