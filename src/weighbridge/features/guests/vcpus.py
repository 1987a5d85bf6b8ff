"""Pins each virtual CPU to its own CPU, by QEMU's names of threads."""

from collections.abc import Sequence

from weighbridge.errors import Unavailable
from weighbridge.model.command import Command
from weighbridge.model.host import Group, Host

_PIN_S = 20.0
# process numbers are read on the host, because a testbed host has its own
_PIN = """set -u
procs=$1 number=0
shift
for cpu in "$@"; do
    pinned=
    for pid in $(cat "$procs"); do
        for task in "/proc/$pid/task/"*; do
            case $(cat "$task/comm" 2>/dev/null) in
            "CPU $number/"*) taskset --pid --cpu-list "$cpu" "${task##*/}" >/dev/null || exit 1; pinned=yes;;
            esac
        done
    done
    [ "$pinned" ] || { echo "no thread of it is virtual CPU $number" >&2; exit 1; }
    number=$((number + 1))
done
"""


def pin(host: Host, group: Group, cpus: Sequence[int]) -> None:
    """Pin virtual CPU 0 of the hypervisor in the group to the first of the CPUs, 1 to the second, and so on.

    Its other threads stay on the CPUs of the group. Raises Unavailable if a virtual CPU cannot be pinned.
    """
    completed = host.run(Command(("sh", "-c", _PIN, "pin", str(group.procs[0]), *map(str, cpus)), _PIN_S))
    if completed.returncode != 0:
        raise Unavailable(f"the virtual CPUs of a guest on host {host.name} cannot be pinned: {completed.last_words}")


def words(cpus: Sequence[int]) -> str:
    """Return the number of virtual CPUs and the CPU of each one, for the facts."""
    return f"{len(cpus)}, each pinned: " + ", ".join(f"{number} to CPU {cpu}" for number, cpu in enumerate(cpus))
