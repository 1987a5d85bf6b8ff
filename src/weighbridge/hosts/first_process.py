"""Finds processes of a container or sandbox by their numbers on the host: the first one, or the launcher."""

from weighbridge.errors import Unavailable
from weighbridge.launcher.build import NAME
from weighbridge.model.command import Command
from weighbridge.model.host import Group, Host

# the first process of a namespace has number 1 there, and another number here
_FIRST_PROCESS = """if [ -d "$1" ]; then find "$1" -name cgroup.procs -exec cat {} +; else
    cat "/proc/$1/task/$1/children"
fi | tr ' ' '\\n' | while read -r pid; do
    if grep -q "^NSpid:.*[[:space:]]1$" "/proc/$pid/status" 2>/dev/null; then echo "$pid"; fi
done"""


def first_process(host: Host, origin: Group | int, name: str) -> int:
    """Return the number, on its host, of the first process of the site ``name``.

    ``origin`` is its control group, or its parent process. Raises Unavailable unless there is exactly one.
    """
    where = str(origin) if isinstance(origin, int) else str(origin.procs[0].parent)
    pids = host.run(Command(("sh", "-c", _FIRST_PROCESS, "first", where), 20)).text.split()
    if len(pids) != 1:
        within = "among the children of its program" if isinstance(origin, int) else "in its control group"
        raise Unavailable(f"{name}: its first process cannot be identified ({len(pids)} candidates {within})")
    return int(pids[0])


# $1: a control group or a process; $2: the launcher's own number; $3: its name in /proc
_LAUNCHER = r"""below() {
    for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do echo "$child"; below "$child"; done
}
if [ -d "$1" ]; then find "$1" -name cgroup.procs -exec cat {} +; else echo "$1"; below "$1"; fi |
while read -r pid; do
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$3" ] &&
        grep -Eq "^NSpid:(.*[[:space:]])?$2\$" "/proc/$pid/status" 2>/dev/null; then echo "$pid"; fi
done"""
_COMM = 15
"""The characters of a program's name that the kernel keeps (proc_pid_comm(5))."""


def launcher_process(host: Host, origin: Group | int, number: int) -> int | None:
    """Return the number, on its host, of the launcher that calls itself ``number``; None if the host does not see it.

    ``origin`` is its control group, or a process that started it.
    """
    where = str(origin) if isinstance(origin, int) else str(origin.procs[0].parent)
    argv = ("sh", "-c", _LAUNCHER, "launcher", where, str(number), NAME[:_COMM])
    pids = host.run(Command(argv, 20)).text.split()
    return int(pids[0]) if len(pids) == 1 else None
