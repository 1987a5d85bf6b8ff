"""The workload `command`: any command of the user, with its run time, resource use and numbers from its output."""

import errno
import os
import re
from collections.abc import Iterator, Mapping

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.measurement import (
    CONTEXT_SWITCHES,
    CPU_SYSTEM,
    CPU_USER,
    PAGE_FAULTS,
    PEAK_MEMORY,
    Measurement,
    Metric,
    ProgramFailed,
    ServerNotReady,
)
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads._local_file import is_program, read_local
from weighbridge.workloads.command.metrics import read_metrics
from weighbridge.workloads.command.options import BUILT_IN, TIME, CommandOptions
from weighbridge.workloads.command.words import place_values

_LAST = 4096
"""The number of bytes at the end of each stream that can contain the reason."""
_KNOWN_REASONS = (
    (
        re.compile(re.escape(os.strerror(errno.EROFS))),
        "it writes to a read-only place: write to /tmp or /run",
    ),
    (
        re.compile(
            rf"{re.escape(os.strerror(errno.ENOTTY))}"
            r"|\b(?:is|are) not a (?:tty|terminal)\b|\bnot a TTY\b|\bneeds? a (?:tty|terminal)\b",
            re.IGNORECASE,
        ),
        "it needs a terminal, which a site does not have",
    ),
    (re.compile(re.escape(os.strerror(errno.EADDRINUSE)), re.IGNORECASE), "its port is in use by another program"),
)
"""The known reasons: a pattern of the program's words, and our explanation."""
_NOT_FOUND = re.compile(r"(?:^|\s)(\S+?): (?:command )?not found\s*$", re.MULTILINE)
NOT_FOUND, NOT_STARTED = 127, 126
"""The exit codes of a shell for a missing program, and for a program that it cannot start."""


def failure_of(completed: Completed, *, shell: bool) -> str:
    """Return one sentence about a program that failed with a nonzero exit code, with its last words."""
    if completed.returncode == NOT_FOUND and shell:
        match = _NOT_FOUND.search(_end(completed.stderr))
        if match:
            return f"the program {match[1]} is not in the root filesystem: add it, or check its name"
    code = completed.returncode
    how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
    meaning = reason(completed)
    prefix = f"{meaning}: " if meaning else ""
    return f"{completed.argv[0]} {how}: {prefix}{completed.last_words}"


def reason(completed: Completed) -> str:
    """Return the known meaning of the program's end, or ""."""
    output = _end(completed.stderr) + "\n" + _end(completed.stdout)
    return next((meaning for pattern, meaning in _KNOWN_REASONS if pattern.search(output)), "")


def _end(printed: bytes) -> str:
    return printed[-_LAST:].decode(errors="replace")


_ANY_THREADS = 1024
"""The threads of a program whose number is unknown. It is the limit once all its CPUs are busy."""
_SERVER_BEYOND_S = 60.0
_FORKED_AWAY = "it exited while its child processes ran on, unmeasured: keep it in the foreground and wait for them"


class OwnCommand(Workload):
    """Runs one command of the study, or its server and its client.

    The site's launcher measures the time of the complete process, from its start to its end. The kernel reports the
    resource use of the process and of the children for which it waited (getrusage(2)). That would not include
    processes that it leaves running in the background, so such a trial fails. All of this applies to the measured
    command alone, not to a server.
    """

    kind = "command"
    summary = "your own program, alone or as a server's client: time, resource use, numbers in its output"
    options = CommandOptions
    packages = ()
    has_data_port = True

    def transports(self, options: CommandOptions) -> tuple[Transport, ...]:
        """Return the protocol of the server's port. UDP also has TCP, because the path is probed over TCP."""
        if options.server is None:
            return ()
        return ("tcp", "udp") if options.protocol == "udp" else ("tcp",)

    def fixed_port(self, options: CommandOptions) -> int | None:
        return options.port

    def packages_for(self, options: CommandOptions) -> tuple[str, ...]:
        return options.packages

    def metrics(self, options: CommandOptions) -> tuple[Metric, ...]:
        """Return the metrics of its output, then its time and its resource use."""
        return (*options.own_metrics(), *BUILT_IN)

    def command(self, role: Role, options: CommandOptions, at: Endpoint) -> Command:
        """Return the server a longer deadline than its clients."""
        if role != "server":
            return _command(options, "run" if options.server is None else role, at)
        deadline_s = options.deadline * (2 if options.warm_up else 1) + options.deadline + _SERVER_BEYOND_S
        argv = _command(options, "server", at).argv
        return Command(
            argv,
            deadline_s,
            options.server_env,
            listens=((options.protocol, at.port),),
            says=options.ready.line or "",
        )

    def prepare(self, options: CommandOptions, at: Endpoint) -> Command | None:
        """Return the study's ``setup``."""
        return _command(options, "setup", at) if options.setup is not None else None

    def restore(self, options: CommandOptions, at: Endpoint) -> Command | None:
        """Return the study's ``prepare``."""
        return _command(options, "prepare", at) if options.prepare is not None else None

    def finish(self, options: CommandOptions, at: Endpoint) -> Command | None:
        """Return the study's ``cleanup``."""
        return _command(options, "cleanup", at) if options.cleanup is not None else None

    def check(self, options: CommandOptions, at: Endpoint) -> Command | None:
        return _command(options, "check", at) if options.check is not None else None

    def warm_up(self, options: CommandOptions, at: Endpoint) -> Command | None:
        """Return the measured command itself, if the study asks for a warm-up."""
        return _command(options, "run" if options.server is None else "client", at) if options.warm_up else None

    def files(self, role: Role, options: CommandOptions, at: Endpoint) -> Mapping[str, bytes]:
        """Return the study's files, the same for each role. Raises ServerNotReady if one has disappeared since the
        check."""
        try:
            return {path: read_local(local, "file") for path, local in options.files.items()}
        except ValueError as error:
            raise ServerNotReady(str(error)) from None

    def file_mode(self, options: CommandOptions, path: str) -> int:
        """Keep a program executable."""
        return 0o755 if is_program(options.files[path]) else 0o644

    def expected_s(self, options: CommandOptions) -> float:
        return options.expects

    def generator_threads(self, options: CommandOptions) -> int:
        return options.threads or _ANY_THREADS

    def parse(self, options: CommandOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read its metrics, its time and its resource use, if that is known. Raises ProgramFailed or Unparseable."""
        program = completed["solo" if options.server is None else "client"]
        if program.returncode != 0:
            raise ProgramFailed(failure_of(program, shell=options.shell))
        if program.left_running:
            raise ProgramFailed(_FORKED_AWAY)
        read = read_metrics(options.metrics, program)
        if options.adapter is not None:
            read += options.adapter.read(program.stdout, program.stderr)
        return TrialResult((*read, Measurement(TIME, program.duration_s), *_use(program)))


def _command(options: CommandOptions, key: str, at: Endpoint) -> Command:
    """Return one of the study's commands with its placeholders filled."""
    values = {**(place_values(at) if options.server is not None else {}), **options.parameters}
    return Command(dict(options.templates())[key].argv(values), options.deadline)


def _use(completed: Completed) -> Iterator[Measurement]:
    if completed.usage is None:
        return
    yield Measurement(CPU_USER, completed.usage.cpu_user_s)
    yield Measurement(CPU_SYSTEM, completed.usage.cpu_system_s)
    yield Measurement(PEAK_MEMORY, completed.usage.peak_memory / 2**20)
    yield Measurement(CONTEXT_SWITCHES, float(completed.usage.switches + completed.usage.preemptions))
    yield Measurement(PAGE_FAULTS, float(completed.usage.minor_faults + completed.usage.major_faults))


PLUGIN = OwnCommand()
