"""Nodes of one Slurm job: sbatch starts the driver on the first, which starts each run as a step of the job."""

import contextlib
import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from weighbridge.errors import Unavailable
from weighbridge.features.fleets.folder import FleetFolder
from weighbridge.features.fleets.machine_provider import DriverState, MachineProvider, ProviderOptions, Submission
from weighbridge.features.slurm import client as slurm
from weighbridge.model.plugin import Readiness

_SCRIPT = """#!/bin/sh
# The batch script of the fleet's job: its words are the driver's command.
exec "$@"
"""
_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
_RUNNING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
_NODES = "--format=%N|%T"
_USABLE = {"idle", "allocated", "mixed", "completing", "planned", "reserved", "blocked"}
"""States of nodes that return by themselves; an asterisk after one means that the node does not answer."""
_NO_LAUNCH, _NO_OUTPUT = re.compile("RaisedSignal|JobLaunchFailure"), "0:53"
"""Reasons of jobs whose batch script was killed or not started, and the exit code if its output was not opened."""
_MARGIN, _LEAST_MIN = 2.5, 10
"""The default time limit in multiples of the longest planned time, and its minimum in minutes."""


def _words(written: Any) -> Any:
    """Return the words of a text, split as by a shell; a list stays one."""
    return tuple(shlex.split(written)) if isinstance(written, str) else written


def _further(words: tuple[str, ...]) -> tuple[str, ...]:
    """Check that each word is an option: sbatch would use another word as the batch script."""
    for number, word in enumerate(words, 1):
        if not re.fullmatch(r"--[a-z][a-z-]*(=.*)?|-[A-Za-z].*", word, re.DOTALL):
            raise ValueError(f"word {number} is not an sbatch option: write --NAME=VALUE")
    return words


_Word = Annotated[str, Field(pattern=r"^[^\s-]\S{0,252}$")]


_JOB = re.compile(r"[0-9]{1,18}(;[A-Za-z0-9_.-]+)?")
"""A job's number, and its cluster if it has one: ``sbatch --parsable`` prints it, and a fleet's folder stores it."""


class SlurmProviderOptions(ProviderOptions):
    """A job: its number of nodes, and its options for sbatch."""

    kind: Literal["slurm"] = "slurm"
    nodes: Annotated[int, Field(ge=1, description="Number of nodes of the job")]
    partition: Annotated[_Word | None, Field(description="The partition; default: Slurm's default")] = None
    account: Annotated[_Word | None, Field(description="The account to charge")] = None
    qos: Annotated[_Word | None, Field(description="The quality of service")] = None
    constraint: Annotated[_Word | None, Field(description="Features that every node must have")] = None
    reservation: Annotated[_Word | None, Field(description="The reservation to use")] = None
    nodelist: Annotated[_Word | None, Field(description="Nodes that must be included")] = None
    exclude: Annotated[_Word | None, Field(description="Nodes to exclude")] = None
    time: Annotated[
        _Word | None, Field(description="The time limit (2:30:00); default: 1.5 times the planned time")
    ] = None
    array: Annotated[
        int | None,
        Field(
            ge=1,
            description="For single machines: one job per node, with at most this many running at a time; "
            "default: one job "
            "for all nodes",
        ),
    ] = None
    sbatch: Annotated[
        tuple[str, ...],
        BeforeValidator(_words, json_schema_input_type=str | tuple[str, ...]),
        AfterValidator(_further),
        Field(description="More sbatch options, each in one word ('--mail-type=END --comment=x')"),
    ] = ()

    @property
    def description(self) -> str:
        """Return words for the plan."""
        where = f" of partition {self.partition}" if self.partition else ""
        how = f", an array of jobs, {self.array} at a time" if self.array else ""
        return f"{self.nodes} node{'s' * (self.nodes != 1)}{where}, through Slurm{how}"

    @property
    def words(self) -> tuple[str, ...]:
        """Return the options for sbatch, except number and names of nodes."""
        names = ("partition", "account", "qos", "constraint", "reservation")
        return tuple(f"--{name}={value}" for name in names if (value := getattr(self, name))) + self.sbatch


class SlurmProvider(MachineProvider):
    """One job with complete nodes. A run is a step on its first machine, and reaches each by a separate step."""

    kind = "slurm"
    summary = "nodes of one Slurm job, which starts when they are free"
    options = SlurmProviderOptions
    stores_environment = True  # slurmctld and slurmd each store a job's in a file
    programs = ("sbatch", "squeue", "scancel", "sinfo", "scontrol", "srun")

    def ready(self, options: Any | None = None) -> Readiness:
        """Return whether Slurm answers, and has the partition."""
        try:
            known = _partitions()
            if options is not None and options.partition:
                _named(known, options.partition)
        except Unavailable as error:
            return Readiness(False, str(error), "sinfo")
        return Readiness(True)

    def count(self, options: Any) -> int:
        """Return the requested number. Raises Unavailable if the partition has fewer nodes in any state."""
        partitions = _named(_partitions(), options.partition)
        if partitions and (most := max(each.nodes for each in partitions)) < options.nodes:
            where = f"partition {' or '.join(each.name for each in partitions)}"
            raise Unavailable(f"{where} has {most} nodes, fewer than the {options.nodes} of --nodes")
        return int(options.nodes)

    def notes(self, options: Any) -> tuple[str, ...]:
        """Return that jobs wait, if the partition is down."""
        with contextlib.suppress(Unavailable):
            named = _named(_partitions(), options.partition)
            if named and not any(each.up for each in named):
                names = ", ".join(each.name for each in named)
                return (f"partition {names} is down, so the job waits until it is up again",)
        return ()

    def submit(self, options: Any, submission: Submission) -> str:
        """Submit the job; it can be requeued, and continues if a node fails."""
        nodes = _array(options, submission) if options.array else _one_job(options, submission)
        script = FleetFolder(submission.folder).write_script(_SCRIPT)
        log = str(submission.folder / "drive.log").replace("%", "%%")
        name = re.sub(r"[^A-Za-z0-9_.-]", "-", f"weighbridge-{submission.study}")
        limit = options.time or str(max(_LEAST_MIN, math.ceil(submission.seconds[1] * _MARGIN / 60)))
        try:
            return job_number(
                slurm.ask(
                    "sbatch", "--parsable", f"--job-name={name}", *nodes, f"--time={limit}", "--exclusive",
                    "--no-kill", "--requeue", "--open-mode=append", f"--output={log}",
                    f"--chdir={submission.folder}", *options.words, "--", str(script), *submission.argv,
                )
            )  # fmt: skip
        except Unavailable:
            script.unlink()  # a refused fleet leaves nothing
            raise

    def state(self, options: Any, job: str) -> DriverState:
        """Return the job's state in the queue, or in the accounting if the queue has forgotten it."""
        try:
            queued = slurm.call("squeue", "--noheader", "--states=all", "--format=%T|%r", *_of(job))
        except Unavailable as error:
            return DriverState("unknown", str(error))
        if queued.returncode == 0 and (states := queue_states(queued.text)):
            return _driver_state(job, states)
        message = queued.stderr.decode(errors="replace")
        if queued.returncode != 0 and "Invalid job id" not in message:
            return DriverState("unknown", slurm.refusal("squeue", queued))
        return DriverState("ended", f"job {_number(job)} {_accounted(job)}".strip())

    def cancel(self, options: Any, job: str, folder: Path) -> None:
        """Signal the driver, which shuts its runs down; a waiting job is removed from the queue."""
        state = self.state(options, job).state
        if state == "ended":
            return
        begun_in = {*slurm.ask("squeue", "--noheader", "--states=all", "--format=%Z", *_of(job)).splitlines()}
        if any(Path(each.strip()).resolve() != folder.resolve() for each in begun_in):
            raise Unavailable(f"job {_number(job)} does not drive the fleet in {folder}, so it was not cancelled")
        if state == "waiting" or options.array:
            slurm.ask("scancel", "--state=PENDING", *_cluster(job), _number(job))
        if state != "waiting":
            slurm.ask("scancel", "--batch", "--signal=TERM", *_cluster(job), _number(job))

    def part(self, options: Any) -> str:
        """Return the number of this job within its array; "" outside of an array."""
        return os.environ.get("SLURM_ARRAY_TASK_ID", "") if options.array else ""

    def allotted(self, options: Any) -> tuple[str, ...]:
        """Return the job's nodes. Raises Unavailable if they are fewer than requested."""
        nodes = slurm.job_nodes()
        if not nodes or (len(nodes) < options.nodes and not options.array):
            raise Unavailable(
                f"job {slurm.job_id()} has {len(nodes)} nodes, fewer than the {options.nodes} of --nodes"
            )
        if array := os.environ.get("SLURM_ARRAY_JOB_ID", "") if options.array else "":
            _exclude_from_rest(array)
        return nodes

    def host(self, options: Any, machine: str) -> Mapping[str, Any]:
        """Return a host of kind slurm."""
        return {"kind": "slurm", "node": machine}

    def command(self, options: Any, machines: Sequence[str], argv: Sequence[str]) -> tuple[str, ...]:
        """Start the run as a step on its first machine, so that no machine does the work of others' runs."""
        return slurm.signalled_step(slurm.job_id(), machines[0], argv)


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition, as reported by sinfo."""

    name: str
    default: bool
    nodes: int
    up: bool = True
    """Whether jobs start there; otherwise they are accepted, and wait."""


def partitions(printed: str) -> list[Partition]:
    """Return the partitions in ``sinfo --format=%P|%D|%a``, ignoring other lines."""
    rows = (re.fullmatch(r"([^|*]+)(\*?)\|(\d{1,9})\|(\w+)", line.strip()) for line in printed.splitlines())
    return [Partition(row[1], bool(row[2]), int(row[3]), row[4] != "down") for row in rows if row]


def job_number(printed: str) -> str:
    """Return the job in the output of ``sbatch --parsable``: "17", or "17;cluster". Raises Unavailable."""
    last = (printed.strip().splitlines() or [""])[-1].strip()
    if not _JOB.fullmatch(last):
        raise Unavailable(
            f"sbatch did not print a job number; it printed {last[:100]!r}. Check squeue before you submit again"
        )
    return last


def queue_states(printed: str) -> list[tuple[str, str]]:
    """Return each state and its reason in ``squeue --format=%T|%r``, one per job of an array."""
    rows = (re.fullmatch(r"([A-Z_]+)\|(.*)", line.strip()) for line in printed.splitlines())
    return [(row[1], "" if row[2] in ("None", "(null)") else row[2]) for row in rows if row]


def accounted_state(printed: str) -> str:
    """Return the state in ``sacct --parsable2 --format=State``: its last line; "" if the job is missing."""
    lines = [line.strip() for line in printed.splitlines() if re.fullmatch(r"[A-Z_]+( by \d+)?", line.strip())]
    return lines[-1] if lines else ""


def _one_job(options: SlurmProviderOptions, submission: Submission) -> tuple[str, ...]:
    """Return options for all nodes at once: as far as possible those that the fleet had before."""
    words = (f"--nodes={options.nodes}", *((f"--exclude={options.exclude}",) if options.exclude else ()))
    had = {*FleetFolder(submission.folder).machines()}
    if options.nodelist or not had:
        return (*words, *((f"--nodelist={options.nodelist}",) if options.nodelist else ()))
    states = slurm.call("sinfo", "--noheader", "--Node", f"--nodes={','.join(sorted(had))}", _NODES)
    again = sorted(had & usable_nodes(states.text))[: options.nodes]
    return (*words, *((f"--nodelist={','.join(again)}",) if again else ()))


def _array(options: SlurmProviderOptions, submission: Submission) -> tuple[str, ...]:
    """Return options for one node after another, except those that are already measured."""
    if submission.pairs:
        raise Unavailable("a job of an array has only one node, but this study needs two machines: remove --array")
    folder = FleetFolder(submission.folder)
    measured = sorted(unit.name for unit in folder.units() if not unit.reason and folder.is_finished(unit))
    left = max(1, options.nodes - len(measured))
    excluded = ",".join((*((options.exclude,) if options.exclude else ()), *measured))
    return (
        f"--array=1-{left}%{options.array}", "--nodes=1", *((f"--exclude={excluded}",) if excluded else ()),
        *((f"--nodelist={options.nodelist}",) if options.nodelist else ()),
    )  # fmt: skip


def _exclude_from_rest(array: str) -> None:
    """Exclude nodes of an array's other jobs from its waiting jobs, so that each node is measured once.

    Does nothing if Slurm does not answer, or does not allow it.
    """
    with contextlib.suppress(Unavailable):
        shown = slurm.ask("scontrol", "--oneliner", "show", "job", array).splitlines()
        waiting = [each for each in shown if slurm.field("JobState", each) == "PENDING"]
        had = slurm.ask("squeue", "--noheader", "--states=all", f"--jobs={array}", "--format=%N").split()
        excluded = {slurm.field("ExcNodeList", each) for each in waiting} - {"", "(null)"}
        if waiting and had:
            slurm.call("scontrol", "update", f"jobid={array}", f"ExcNodeList={','.join(sorted({*had, *excluded}))}")


def usable_nodes(printed: str) -> set[str]:
    """Return the nodes in ``sinfo --Node --format=%N|%T`` on which jobs start, now or later."""
    rows = (re.fullmatch(r"(\S+)\|([a-z]+)([*~#%$@^-]*)", line.strip()) for line in printed.splitlines())
    return {row[1] for row in rows if row and row[2] in _USABLE and "*" not in row[3]}


def _partitions() -> list[Partition]:
    return partitions(slurm.ask("sinfo", "--noheader", "--format=%P|%D|%a"))


def _named(known: Sequence[Partition], names: str | None) -> list[Partition]:
    """Return the partitions with these names, separated by commas, or else the default. Raises Unavailable."""
    if not names:
        return [each for each in known if each.default]
    chosen = [each for each in known if each.name in names.split(",")]
    if not chosen:
        raise Unavailable(f"Slurm has no partition {names}: use {', '.join(each.name for each in known) or 'none'}")
    return chosen


def _driver_state(job: str, states: Sequence[tuple[str, str]]) -> DriverState:
    names = [state for state, _ in states]
    known: Literal["waiting", "running", "ended"]
    known = "running" if {*names} & _RUNNING else "waiting" if {*names} & _WAITING else "ended"
    summary = ", ".join(f"{number} " * (len(names) > 1) + name for name, number in Counter(names).items())
    reason = ", ".join(dict.fromkeys(reason for _, reason in states if reason))
    if _NO_LAUNCH.search(reason):
        reason = _killed_or_not_started(job)
    return DriverState(known, f"job {_number(job)} {summary}" + (f" ({reason})" if reason else ""))


def _killed_or_not_started(job: str) -> str:
    """Return why a signal ended the batch script of a job; "" if unknown."""
    try:
        shown = slurm.ask("scontrol", "--oneliner", *_cluster(job), "show", "job", _number(job))
    except Unavailable:
        return ""
    code = slurm.field("ExitCode", shown)
    if code == _NO_OUTPUT:
        return "its node could not start it: put --out on storage that all nodes share"
    number = code.partition(":")[2]
    return f"the driver was killed by signal {number}" if number not in ("", "0") else ""


def _accounted(job: str) -> str:
    try:
        answer = slurm.call(
            "sacct", "--noheader", "--parsable2", "--allocations", "--duplicates", "--format=State", *_of(job)
        )
    except Unavailable:
        return ""
    return accounted_state(answer.text) if answer.returncode == 0 else ""


def _number(job: str) -> str:
    """Return the number of a job in a fleet's folder. Raises Unavailable for other text."""
    if not _JOB.fullmatch(job):
        raise Unavailable(f"{job[:60]!r} is not a Slurm job: the fleet's folder is damaged")
    return job.partition(";")[0]


def _cluster(job: str) -> tuple[str, ...]:
    cluster = job.partition(";")[2]
    return (f"--clusters={cluster}",) if cluster else ()


def _of(job: str) -> tuple[str, ...]:
    return (*_cluster(job), f"--jobs={_number(job)}")


PLUGIN = SlurmProvider()
