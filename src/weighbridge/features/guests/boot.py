"""Starts the process of a guest, and waits for the launcher in it. The hypervisors share it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from weighbridge.errors import Unavailable
from weighbridge.features.guests import vsock
from weighbridge.features.guests.console import last_words
from weighbridge.features.guests.network import Network
from weighbridge.launcher.launch import Launcher
from weighbridge.launcher.within import within
from weighbridge.linux.process import environment_of
from weighbridge.model.command import Command, HostProcess, Stream
from weighbridge.model.host import Group
from weighbridge.model.site import SiteRequest

BOOTS_S = (90.0, 90.0)
"""Seconds that each boot can take until its launcher greets: 4 when emulated on an idle machine, several times as
long on a busy one. Of some hundred emulated boots with two virtual CPUs one stood still without a word: hence two.
"""
_TOGETHER_S = 0.2


class Machine(Protocol):
    """A guest's machine, whose process has the launcher's stream as stdin and stdout, and its console as stderr.

    ``window`` is the number of bytes that the stream holds if it has no flow control; 0 if it has. With a
    ``vsock``, which is the path of that device's socket, the stream goes over it, and stdout belongs to the console.
    """

    @property
    def network(self) -> Network | None: ...  # noqa: D102

    @property
    def window(self) -> int: ...  # noqa: D102

    @property
    def vsock(self) -> Path | None: ...  # noqa: D102

    def argv(self) -> tuple[str, ...]: ...  # noqa: D102


@contextmanager
def booted(
    machine: Machine, request: SiteRequest, group: Group | None, layer: tuple[str, ...] = ()
) -> Iterator[Launcher]:
    """Boot the guest and yield its launcher; boot again if it hangs, not if it ends. Raises Unavailable.

    ``layer`` has the launcher's options for the guest's view of its host (`within`).
    """
    for attempt, ready_s in enumerate(BOOTS_S, 1):
        with ExitStack() as stack:
            boot = _Boot(machine, request, group, layer, stack)
            try:
                launcher = boot.launcher(ready_s)
            except Unavailable:
                if boot.ended or attempt == len(BOOTS_S):
                    raise
                request.run.say(f"{request.title}: its guest did not answer within {ready_s:.0f} s; booting it again")
                continue
            yield launcher
            return


class _Boot:
    """A guest that is started, and ended with ``stack``."""

    def __init__(
        self,
        machine: Machine,
        request: SiteRequest,
        group: Group | None,
        layer: tuple[str, ...],
        stack: ExitStack,
    ) -> None:
        host, run = request.host, request.run
        if machine.network is not None:
            machine.network.must_be_free(host)
            stack.enter_context(machine.network.made(host))
        self._machine, self._request, self._stack = machine, request, stack
        command = Command(within(host, run, group, *machine.argv(), layer=layer))
        self._process: HostProcess
        self._stream: Callable[[float], Stream | None]
        """Returns the stream, for which it can wait some seconds; None if the guest does not call."""
        if machine.vsock is None:
            self._process, stream = host.talk(command)
            self._stream = lambda _: stream
        else:
            listener = stack.enter_context(vsock.listening(machine.vsock))
            self._process = host.start(command)
            self._stream = lambda within_s: vsock.answered(listener, self._process, within_s)
        stack.callback(self._process.stop)
        self.ended = False
        """Whether the guest's process had ended by itself when the guest was given up."""

    def launcher(self, ready_s: float) -> Launcher:
        """Return the guest's launcher once it has greeted. Raises Unavailable."""
        request = self._request
        if self._machine.network is not None:
            self._machine.network.join(request.host, self._process, self._why)
        if (stream := self._stream(ready_s)) is None:
            raise Unavailable(f"{request.title}: its launcher did not start: {self._why()}")
        launcher = Launcher(
            stream,
            request.title,
            self._why,
            environment_of(request.run.id),
            ready_s,
            window=self._machine.window,
        )
        return self._stack.enter_context(launcher)

    def _why(self) -> str:
        self.ended = self._process.wait(_TOGETHER_S)
        completed = self._process.stop()
        console_tail = last_words(completed.stdout + completed.stderr)
        end = "its guest ended" if self.ended else "its guest does not answer"
        return f"{end}{f': {console_tail}' if console_tail else ''}"
