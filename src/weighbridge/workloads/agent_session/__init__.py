"""An agent session: the commands that a coding agent runs in a repository, one process after the other."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, require_success
from weighbridge.model.options import Options
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads._printed_lines import POSITIVE, figures
from weighbridge.workloads.agent_session.session import EXPECTED, PROCESSES, PROGRAMS, STEPS

SESSION = Metric("session", "s", "lower")
STEP_METRICS = tuple(Metric(step, "ms", "lower") for step in STEPS)
FILES = 3010
"""The files of the repository."""
DIGEST = "d119aeee399911005db9d6ea71c17d3bae61da237b4355d8069b36889dde63e5"
"""The digest of its files and of its history, as ``repository.py`` computes it."""
_SCRIPTS = "/tmp/weighbridge-agent-"  # noqa: S108 - of the site
"""The beginning of the paths of the scripts and of the patch. Most sandboxes cannot write to /run."""
_ENV = {
    "HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat", "PAGER": "cat", "TZ": "UTC",
    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
}  # fmt: skip
"""No user's or machine's settings, no home folder, no pager and no network. ``safe.directory`` makes git accept files
of another user, which an environment with mapped users shows."""


class AgentSessionOptions(Options):
    """Options of an agent session. Everything else is fixed, so that results compare."""

    sessions: Annotated[int, Field(ge=1, le=1000, description="Sessions per trial, each with the same commands")] = 2


class AgentSession(Workload):
    """Small files and short processes: an agent starts a new process for each command, and reads its output.

    The workload makes a repository of 3,010 small files with 30 commits on the site's disk. Every name, date and line
    comes from a fixed seed. A session has 43 commands: git status and log, ls and find, ripgrep, cat and sed, a patch
    with `git apply`, git diff, Python unit tests, a C build with make, and a JavaScript check. It ends with
    `git restore` and `git clean`. TypeScript is missing: Debian's compiler has 67 MB, and needed 3 s of CPU time for
    one line. All other steps together need 1 s.

    A Python script starts the commands. Its own work between two commands is not timed, and its part of a timed
    command is about 0.06 ms longer than that of a C program: 3 ms in a session. A step fails the trial if a
    command fails or prints something else than expected, and so does a repository that differs after the trial.
    The script itself starts once per trial inside the environment: an agent that opens a new sandbox for each command
    pays for each start in addition.
    """

    kind = "agent-session"
    summary = "the commands of a coding agent in a repository: git, ripgrep, find, tests, a build"
    options = AgentSessionOptions
    packages = ("gcc", "git", "libc6-dev", "make", "nodejs", "python3", "ripgrep")

    def metrics(self, options: AgentSessionOptions) -> tuple[Metric, ...]:
        """Return the time of one session in s, and of each step in ms, as means over the sessions of a trial.

        ``session`` is the sum of the steps, because that is how long a user waits. A geometric mean would give a step
        of 10 ms the same weight as the build.
        """
        return SESSION, *STEP_METRICS

    def files(self, role: Role, options: AgentSessionOptions, at: Endpoint) -> Mapping[str, bytes]:
        """Return the two scripts, and the patch that the session applies."""
        package, names = files("weighbridge.workloads.agent_session"), ("repository.py", "session.py", "fix.patch")
        return {f"{_SCRIPTS}{name}": (package / name).read_bytes() for name in names}

    def room(self, options: AgentSessionOptions) -> int:
        """Count the files in blocks of a page, and the history."""
        return 32 * 2**20

    def inodes(self, options: AgentSessionOptions) -> int:
        """Count the files, folders, and temporary files of the tests and the build."""
        return 2 * FILES

    def prepare(self, options: AgentSessionOptions, at: Endpoint) -> Command:
        return _script("repository.py", 600, "make", _folder(at), *PROGRAMS)

    def restore(self, options: AgentSessionOptions, at: Endpoint) -> Command:
        """Undo the changes of a session that failed, and refresh git's index."""
        return _script("repository.py", 120, "restore", _folder(at))

    def command(self, role: Role, options: AgentSessionOptions, at: Endpoint) -> Command:
        """Allow for an emulated CPU, which is about twenty times slower."""
        return _script("session.py", 60 + 60 * options.sessions, _folder(at), str(options.sessions))

    def check(self, options: AgentSessionOptions, at: Endpoint) -> Command:
        """Compare the digest of all files and of the history."""
        return _script("repository.py", 120, "check", _folder(at), DIGEST)

    def expected_s(self, options: AgentSessionOptions) -> float:
        return 0.3 + 1.2 * options.sessions

    def beside_s(self, options: AgentSessionOptions) -> float:
        """Return the time to restore and check the repository."""
        return 0.6

    def prepare_s(self, options: AgentSessionOptions) -> float:
        return 1.5

    def parse(self, options: AgentSessionOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the time of each step of each session. Raises ProgramFailed or Unparseable."""
        lines = [
            rf'\{{"session": {number}, "step": "{step}", "processes": {PROCESSES[step]}, '
            rf'"nanoseconds": {POSITIVE}, "lines": {EXPECTED[step][0]}\}}'
            for number in range(1, options.sessions + 1)
            for step in STEPS
        ]
        end = rf'\{{"sessions": {options.sessions}, "files": {FILES}, "versions": \{{"git": "[^\n]{{1,5000}}"\}}\}}'
        printed = figures(require_success(completed["solo"], "the session"), [*lines, end])
        times = [nanoseconds for (nanoseconds,) in printed[:-1]]
        steps = [sum(times[number :: len(STEPS)]) / options.sessions for number in range(len(STEPS))]
        measured = [Measurement(metric, mean / 1e6) for metric, mean in zip(STEP_METRICS, steps, strict=True)]
        return TrialResult((Measurement(SESSION, sum(steps) / 1e9), *measured), work_s=sum(times) / 1e9)


def _script(name: str, deadline_s: float, *arguments: str) -> Command:
    return Command(("python3", "-I", f"{_SCRIPTS}{name}", *arguments), deadline_s, env=_ENV)


def _folder(at: Endpoint) -> str:
    return f"{at.data}/agent-session"


PLUGIN = AgentSession()
