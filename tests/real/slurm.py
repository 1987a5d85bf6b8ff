"""Debian's Slurm on this machine: a login node with the controller, and three nodes.

    login  198.19.200.1   munged, slurmctld; sbatch, srun ... are called here
    n1     198.19.200.2   munged, slurmd
    n2     198.19.200.3   munged, slurmd
    n3     198.19.200.4   munged, slurmd

Each is a testbed host: namespaces, /run, /etc and /var/lib of its own, which end with us, however we end. They see
this machine's files, so a folder in /tmp is shared by all; what has to be a machine's own is below its /run.

    apt-get install slurmctld slurmd slurm-client munge     # the daemons that Debian starts are not used: stop them
    .venv/bin/python -m tests.real.slurm    # one to try things on, until Ctrl-C
"""

import contextlib
import secrets
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from weighbridge.hosts.options import TestbedOptions
from weighbridge.hosts.testbed import testbed_host
from weighbridge.linux import process
from weighbridge.linux.packages import install_here
from weighbridge.model.command import Completed

from .conftest import open_run
from .daemons import DaemonMachine

RUN = "514a514a514a"
LOGIN, NODES = "login", ("n1", "n2", "n3")
READY_S = 30.0
_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch")
_SOCKET = "/run/munge/munge.socket.2"
# $1: the machine's own folder, $2: its name, $3: the hosts file of all, $4: its machine-id, $5: /var/cache of all
_FURNISH = """set -e
hostname "$2"
cp "$3" /etc/hosts
echo "$4" > /etc/machine-id
mkdir -p /run/munge /run/slurm "$1/spool"
chmod 755 /run/munge
mount --bind "$5" /var/cache
"""
# memory is a resource here, as at most sites; a job that is requeued may start again once its credentials are void
_CONFIGURATION = """ClusterName=tests
SlurmctldHost={login}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={socket},cred_expire=5
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
ReturnToService=1
SlurmctldTimeout=20
SlurmdTimeout={silence}
KillWait={kill_wait}
MessageTimeout=10
MinJobAge=600
RequeueExit=99
OverTimeLimit=0
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n/slurmd.log
{nodes}
PartitionName=compute Nodes={names} Default=YES MaxTime=60 State=UP OverSubscribe=EXCLUSIVE
PartitionName=closed Nodes={names} MaxTime=60 State=DOWN
"""


def missing() -> str:
    """Return why there can be no Slurm on this machine; "" where there can."""
    lacking = [program for program in _PROGRAMS if process.which(program) is None]
    return f"needs {', '.join(lacking)}: {install_here(lacking)}" if lacking else ""


@dataclass(kw_only=True)
class Machine(DaemonMachine):
    """A machine of it."""

    answer_s = 60.0
    said = "out"  # slurmd has a log of its own

    def kill(self, daemon: str) -> None:
        """End a daemon at once, by SIGKILL; what it started goes on."""
        self.run("pkill", "-KILL", "--exact", daemon)
        self.daemons.pop(daemon).stop()


@dataclass
class Slurm:
    """The machines, and what is asked of the controller."""

    folder: Path
    login: Machine
    nodes: dict[str, Machine]

    @property
    def variables(self) -> dict[str, str]:
        """The environment in which Slurm's commands find this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *argv: str | Path, deadline_s: float = 60.0, env: Mapping[str, str] | None = None) -> Completed:
        """Run a command on the login node."""
        return self.login.run(*argv, deadline_s=deadline_s, env={**self.variables, **(env or {})})

    def must(self, *argv: str | Path, deadline_s: float = 60.0) -> str:
        """Return what a command on the login node prints; it has to succeed."""
        done = self.run(*argv, deadline_s=deadline_s)
        assert done.returncode == 0, f"{done}\n{self.last_words()}"
        return done.text

    def state_of(self, job: str) -> str:
        """The state of a job as the controller knows it ("RUNNING"); "" of one that it does not know."""
        done = self.run("scontrol", "--oneliner", "show", "job", job)
        words = [word for word in done.text.split() if word.startswith("JobState=")]
        return words[0].removeprefix("JobState=") if words else ""

    def set_node(self, name: str, state: str) -> None:
        """Set a node down, or let it come back ("resume")."""
        reason = ("reason=test",) if state in ("down", "drain") else ()
        self.must("scontrol", "update", f"nodename={name}", f"state={state}", *reason)

    def start_controller(self) -> None:
        """Start slurmctld, with what it knew before."""
        self.login.start("slurmctld", "slurmctld", "-D", **self.variables)

    def start_node(self, name: str) -> None:
        """Start slurmd on a node."""
        self.nodes[name].start("slurmd", "slurmd", "-D", **self.variables)

    def await_nodes(self) -> None:
        """Wait until every node is idle."""
        states = ("sinfo", "--noheader", "--Node", "--partition=compute", "--format=%T")
        self.eventually("all nodes are idle", lambda: self.run(*states).text.split() == ["idle"] * len(self.nodes))

    def end_jobs(self) -> None:
        """Cancel every job, and wait until no node has any of them."""
        self.must("scancel", "--user=root")
        self.eventually("no job is left", lambda: not self.must("squeue", "--noheader").strip())

    def last_words(self) -> str:
        """The last messages of every daemon."""
        logs = sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*/*.log"))
        tails = ((log, log.read_text(errors="replace").splitlines()[-4:]) for log in logs)
        return "\n".join(f"{log.relative_to(self.folder)}: {' | '.join(lines)}" for log, lines in tails)

    def eventually(self, what: str, condition: Callable[[], bool], seconds: float = READY_S) -> None:
        """Wait until a condition holds; fail with the last messages of every daemon where it does not."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}\n{self.last_words()}"
            time.sleep(0.1)


@contextmanager
def three_nodes(folder: Path, *, run_id: str = RUN, silence_s: int = 10, kill_wait_s: int = 5) -> Iterator[Slurm]:
    """Start Slurm with three nodes; it ends with everything that runs in it. ``folder`` is seen by all.

    A node is down after ``silence_s``; who is told to end has ``kill_wait_s`` before it is killed.
    """
    with open_run(run_id) as run, ExitStack() as stack:
        machines = {}
        for name in (LOGIN, *NODES):
            own = folder / name
            own.mkdir(parents=True)
            host = stack.enter_context(testbed_host(name, TestbedOptions(kind="testbed"), run))
            machines[name] = Machine(name=name, host=host, folder=own)
            stack.callback(_stop, machines[name])
        nodes = {name: machines[name] for name in NODES}
        slurm = Slurm(folder, machines[LOGIN], nodes)
        stack.callback(_end_steps, slurm)
        _configure(slurm, silence_s, kill_wait_s)
        for machine in machines.values():
            _start_munge(machine, folder)
        slurm.start_controller()
        for name in nodes:
            slurm.start_node(name)
        slurm.await_nodes()
        yield slurm


def _stop(machine: Machine) -> None:
    for daemon in reversed(machine.daemons.values()):
        daemon.stop()


def _end_steps(slurm: Slurm) -> None:
    """Have no step outlive its slurmd: a slurmstepd that is killed with its host says nothing to anybody."""
    with contextlib.suppress(AssertionError):
        slurm.end_jobs()


def _configure(slurm: Slurm, silence_s: int, kill_wait_s: int) -> None:
    folder, every = slurm.folder, (slurm.login, *slurm.nodes.values())
    for name in ("state", "cache"):  # a userland is received once
        (folder / name).mkdir()
    names = "".join(f"{machine.host.address} {machine.name}\n" for machine in every)
    (folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
    nodes = "\n".join(
        f"NodeName={name} NodeAddr={node.host.address} CPUs=1 RealMemory=1000 State=UNKNOWN"
        for name, node in slurm.nodes.items()
    )
    (folder / "slurm.conf").write_text(
        _CONFIGURATION.format(
            login=LOGIN, address=slurm.login.host.address, socket=_SOCKET, folder=folder, nodes=nodes,
            names=",".join(slurm.nodes), silence=silence_s, kill_wait=kill_wait_s,
        )
    )  # fmt: skip
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    (folder / "munge.key").chmod(0o400)
    for machine in every:
        own = (machine.folder, machine.name, folder / "hosts", secrets.token_hex(16), folder / "cache")
        machine.must("sh", "-c", _FURNISH, "furnish", *own)


def _start_munge(machine: Machine, folder: Path) -> None:
    machine.start(
        "munged", "munged", "--foreground", "--force", f"--socket={_SOCKET}", f"--key-file={folder / 'munge.key'}",
        "--pid-file=/run/munge/munged.pid", "--log-file=/run/munge/munged.log", "--seed-file=/run/munge/munged.seed",
    )  # fmt: skip
    deadline = time.monotonic() + READY_S
    while machine.run("munge", "--no-input", "--output=/dev/null").returncode != 0:
        assert time.monotonic() < deadline, machine.daemons["munged"].stop()
        time.sleep(0.05)


def main() -> None:
    """Run a Slurm until Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's job in the background would ignore the first
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder, three_nodes(Path(folder)) as slurm:
        print(slurm.must("sinfo", "--long", "--Node"), end="")
        print(f"nsenter --target {slurm.login.host.pid} --all env SLURM_CONF={folder}/slurm.conf bash", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
