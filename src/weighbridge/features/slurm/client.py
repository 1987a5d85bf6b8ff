"""Slurm's commands: their arguments, their output, and one sentence for each known failure."""

import os
import re
from collections.abc import Iterable, Sequence

from weighbridge.errors import Unavailable
from weighbridge.linux.process import run, which
from weighbridge.model.command import Command, Completed

WITHOUT_JOB = (
    "SLURM_JOB_ID is not set, so Weighbridge is not running in a Slurm job",
    "salloc --nodes=2 --exclusive",
)
"""The problem outside of a job, and the remedy."""
_ANSWER_S = 30.0
_KEPT = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_WORKING_CLUSTER")
_OF_JOBS = ("SLURM_", "SRUN_", "SBATCH_", "SALLOC_")


def job_id() -> str:
    """Return the number of the current job; "" outside of a job."""
    return os.environ.get("SLURM_JOB_ID", "")


def job_nodes() -> tuple[str, ...]:
    """Return the nodes of the current job, in Slurm's order. Raises Unavailable.

    SLURM_JOB_NODELIST is not used because it can be the list of a step.
    """
    if not job_id():
        raise Unavailable(f"{WITHOUT_JOB[0]}: {WITHOUT_JOB[1]}")
    listed = field("NodeList", ask("scontrol", "--oneliner", "show", "job", job_id()))
    return tuple(ask("scontrol", "show", "hostnames", listed).split()) if listed not in ("", "(null)") else ()


def field(name: str, shown: str) -> str:
    """Return a field in the output of ``scontrol --oneliner show``; "" if it is missing."""
    match = re.search(rf"(?:^|\s){name}=(\S*)", shown)
    return match.group(1) if match else ""


def call(*argv: str) -> Completed:
    """Run one of Slurm's commands to its end. Raises Unavailable if it is not installed."""
    if which(argv[0]) is None:
        raise Unavailable(f"the program '{argv[0]}' is not installed")
    return run(Command((*_without_options(), *argv), _ANSWER_S))


def ask(*argv: str) -> str:
    """Return the output of one of Slurm's commands. Raises Unavailable, with one sentence, if it fails."""
    completed = call(*argv)
    if completed.returncode != 0:
        raise Unavailable(refusal(argv[0], completed))
    return completed.text


def _without_options() -> tuple[str, ...]:
    """Return the words before a command that remove the variables which Slurm's commands use as options.

    sbatch and srun set such variables for the steps of a job: number of tasks, memory per CPU, nodes of a step.
    """
    names = sorted(name for name in os.environ if name.startswith(_OF_JOBS) and name not in _KEPT)
    return ("env", *(word for name in names for word in ("-u", name)), "--")


def step(job: str, node: str, *further: str) -> tuple[str, ...]:
    """Return the words before a command that run it as a step on a node, with everything that the job has there.

    It shares the job's memory with other steps and is not bound to CPUs. SIGTERM to srun kills the step with SIGKILL,
    so a clean end needs the end of its standard input. If srun itself is killed, the step continues, and its input
    does not end.
    """
    return (
        *_without_options(), "srun", f"--jobid={job}", f"--nodelist={node}", "--nodes=1", "--ntasks=1", "--overlap",
        "--mem=0", "--cpu-bind=none", "--mpi=none", "--export=ALL", "--job-name=weighbridge", *further, "--",
    )  # fmt: skip


# the program has no standard input; the shell ignores SIGTERM, which a scheduler sends to all processes of a step
_ENDS_WITH_INPUT = """exec 3<&0
"$@" < /dev/null 3<&- & program=$!
(cat <&3; kill -TERM "$program") > /dev/null 2>&1 &
exec 3<&-
trap "" TERM
wait "$program"
"""
_ENDS_INPUT_AT_SIGTERM = """pipe=$(mktemp -u)
mkfifo -m 600 "$pipe" || exit 125
"$@" < "$pipe" & program=$!
exec 3> "$pipe"
rm -f "$pipe"
trap "exec 3>&-" TERM
while wait "$program"; code=$?; kill -0 "$program" 2> /dev/null; do :; done
exit "$code"
"""


def signalled_step(job: str, node: str, argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command that runs another as a step on a node, passes SIGTERM on to it, and has its exit code.

    It has no standard input.
    """
    inner = ("sh", "-c", _ENDS_WITH_INPUT, "step", *argv)
    return ("sh", "-c", _ENDS_INPUT_AT_SIGTERM, "step", *step(job, node, "--input=all"), *inner)


SILENT = "its step ended without a message"
"""The message if Slurm prints none."""
_ANY: tuple[tuple[str, str], ...] = (
    (r"Unable to contact slurm controller|Zero Bytes were transmitted|Socket timed out",
     "Slurm's controller does not answer. Try: scontrol ping"),
    (r"[Mm]unge encode failed|Invalid authentication credential|Protocol authentication error",
     "Slurm rejects the credentials of this user ({line}): check munge on both machines"),
    (r"configuration source|Unable to process configuration|no slurm\.conf",
     "Slurm has no configuration here ({line}): set SLURM_CONF"),
    (r"temporarily unable to accept job|job queue full",
     "Slurm's queue is full: submit again once jobs have ended (squeue)"),
)  # fmt: skip
"""Patterns of lines that any of the commands can print, and the sentences."""
_STEPS: tuple[tuple[str, str], ...] = (
    (r"weighbridge: python3 is (\S+)", "its python3 has version {0}: install 3.9 or newer"),
    (r"execve\(\): python3: (.+)$",
     "python3 is not installed there ({0}): install it with the package manager there (3.9 or newer)"),
    (r"unrecognized option '(--\S+)'", "srun does not know {0}: use Slurm 20.11 or newer"),
    (r"DUE TO TIME LIMIT", "the time limit of the job was reached: give it more time (--time)"),
    (r"DUE TO NODE FAILURE|Node failure on|NODE FAILURE", "the node failed or was set down: check sinfo"),
    (r"DUE TO PREEMPTION", "the job was preempted by another"),
    (r"STEP \S+ ON \S+ CANCELLED|Job/step already completing or completed|force terminated job",
     "the job was cancelled, or has ended"),
    (r"Invalid job id specified|Expired or invalid job",
     "the job no longer exists: start Weighbridge in a job (salloc, sbatch)"),
    (r"Access/permission denied", "the job belongs to another user: start Weighbridge in a job of this user"),
    (r"Required node not available|Requested nodes? (?:configuration is )?not available|Invalid node name",
     "the node is down, drained or not part of the job: check sinfo"),
    (r"Requested nodes are busy|step creation temporarily disabled|Memory required by task is not available",
     "Slurm does not start another step there while the job has other steps ({line})"),
    (r"Task launch for \S+ failed on node (\S+): (.+)$|Application launch failed: (.+)$",
     "slurmd does not start a step there ({line}): check sinfo"),
)  # fmt: skip
"""The same patterns for messages of srun and slurmstepd about a step."""
_PREFIX = re.compile(r"^(?:srun|slurmstepd|scontrol|sbatch|squeue|scancel|sacct)(?:-\S+)?: (?:error: |fatal: )?")
_NO_FAILURE = re.compile(r"lacks support for cpu binding")
_LONGEST = 200


def _lines(output: str) -> list[str]:
    lines = (_PREFIX.sub("", line.strip()) for line in output.splitlines())
    printable = ("".join(c for c in line if c.isprintable())[:_LONGEST] for line in lines)
    return [line for line in printable if line.strip("* ") and not _NO_FAILURE.search(line)]


def _known(lines: Sequence[str], table: Iterable[tuple[str, str]]) -> str:
    """Return the sentence of the first row of a table that matches any line; "" without a match."""
    for pattern, template in table:
        for line in lines:
            if match := re.search(pattern, line):
                return template.format(*(match.groups() or ()), line=line)
    return ""


def unstarted(output: str) -> str:
    """Return why a step did not start, by all output; else its last words, or ""."""
    lines = _lines(output)
    last = f"srun cannot start a step on it: {'; '.join(lines[-3:])}" if lines else ""
    return _known(lines, (*_ANY, *_STEPS)) or last


def ended(output: str) -> str:
    """Return why a step has ended, as a clause, from srun's messages."""
    lines = _lines(output)
    if known := _known(lines, (*_ANY, *_STEPS)):
        return known
    detail = f" ({lines[-1]})" if lines else ""
    return f"its step ended{detail}: check sinfo and 'scontrol show job $SLURM_JOB_ID'"


def refusal(program: str, completed: Completed) -> str:
    """Return why a command of Slurm's failed."""
    lines = _lines(completed.stderr.decode(errors="replace") + "\n" + completed.text)
    return _known(lines, _ANY) or f"{program} failed: {lines[-1] if lines else f'exit code {completed.returncode}'}"
