"""exec: the time of a command that is started in a site that is already open."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Metric
from weighbridge.model.options import Options
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads._printed_lines import POSITIVE, figures
from weighbridge.workloads._start_times import mean_of, measured_percentiles, percentiles_of

TIME_TO_EXIT = Metric("time_to_exit", "s", "lower")
TIME_TO_OUTPUT = Metric("time_to_output", "s", "lower")
_PROGRAM = "repeat"
"""The mode of the launcher that starts a program again and again, and its name in messages."""
_LONGEST_S = 10.0
"""The longest plausible time of one command."""
_EXPECTED_S = 0.1
"""A guess of the time of one command, from ``docker exec``."""


class ExecOptions(Options):
    """Options of commands in an open site."""

    commands: Annotated[
        int,
        Field(
            ge=1,
            le=10_000,
            description="Commands per trial, one after the other. 20 give a 95th percentile and 100 a 99th",
        ),
    ] = 20


class Exec(Workload):
    """Runs ``echo`` again and again in a site that is already open, as coding agents and CI systems do.

    The command is started on the host of the site, in the way that belongs to the environment: ``docker exec``,
    ``podman exec``, ``nsenter`` for bubblewrap and network namespaces, and natively without any other program. For a
    pod, ``kubectl exec`` is started on this machine. For a new site for each command, use ``boot``. Environments that
    a program of the host cannot enter are refused.

    ``time_to_exit`` is the time from just before the start of the first word until it has ended. ``time_to_output``
    is the time until its first byte has arrived. Both are geometric means over the commands of a trial. Percentiles
    follow: ``_p50`` from 2 commands on, ``_p95`` from 20 on, and ``_p99`` from 100 on. Every environment has the same
    number of commands, which is fixed before the run. A trial begins with a command that does not count.

    The time includes the start of the entering program (docker, nsenter), its work, the start of ``echo`` from the
    root filesystem, and the way of its output. With Docker the engine and its runtime work, too. With a pod it also
    includes the network to the API server, which checks the user's rights, and the node's kubelet and runtime. For a
    native environment on a node, the launcher of the privileged pod starts the commands. Weighbridge's own
    launcher, a small C program, starts the commands without a shell and reads the host's clock
    (``launcher/source/repeat.c``). Its own CPU time for each command is in the last line of the raw output: 0.06 to
    0.15 ms on a busy machine.

    On the host, Weighbridge starts only its launcher and the entering program. No file of the root filesystem runs
    outside of the site.

    nsenter joins namespaces and the control group of the site. It does not set the capabilities, the system-call
    filter or no-new-privileges of a sandbox, so its commands have more rights than the sandbox's own programs.
    ``podman exec`` includes the programs that give the run's podman its own folders.
    """

    kind = "exec"
    summary = "time of a command in a container, pod, sandbox or chroot that is already there (docker exec, nsenter)"
    options = ExecOptions
    packages = ("coreutils",)

    def enters(self, options: ExecOptions) -> bool:
        return True

    def metrics(self, options: ExecOptions) -> tuple[Metric, ...]:
        """Return the seconds until the end and until the first output, as geometric means, with percentiles."""
        percentiles = [percentiles_of(metric, options.commands) for metric in (TIME_TO_EXIT, TIME_TO_OUTPUT)]
        return (TIME_TO_EXIT, TIME_TO_OUTPUT, *percentiles[0], *percentiles[1])

    def command(self, role: Role, options: ExecOptions, at: Endpoint) -> Command:
        argv = (_PROGRAM, str(options.commands), *at.entry, "echo")
        return Command(argv, deadline_s=60 + _LONGEST_S * options.commands)

    def expected_s(self, options: ExecOptions) -> float:
        return _EXPECTED_S * (options.commands + 1)

    def parse(self, options: ExecOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the times of all commands. Raises ProgramFailed or Unparseable."""
        lines = [f"output {POSITIVE} end {POSITIVE}"] * options.commands
        printed = replace(completed["solo"], argv=(_PROGRAM,))  # else it is the launcher's path
        *starts, _ = figures(printed, [*lines, rf"starts {options.commands} own (\d{{1,18}})"])
        output, end = ([start[place] / 1e9 for start in starts] for place in (0, 1))
        means = mean_of(TIME_TO_EXIT, end), mean_of(TIME_TO_OUTPUT, output)
        percentiles = *measured_percentiles(TIME_TO_EXIT, end), *measured_percentiles(TIME_TO_OUTPUT, output)
        return TrialResult((*means, *percentiles))


PLUGIN = Exec()
