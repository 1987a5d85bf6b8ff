"""Finds the first process of a container or sandbox by its number on the host."""

from weighbridge.errors import Unavailable
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
