"""What the idle CPUs of the machine that measures do: a study asks for it, and it is kept as a fact of its host."""

from typing import Literal

CpuIdle = Literal["halt", "poll", "auto"]
"""``auto``: they poll where they are those of a virtual machine."""
IDLE_CPUS = "idle CPUs"
"""The key of the fact."""
HALT, POLL = "halt", "poll"
"""Its values; in older runs words follow."""


def idle_code(value: str) -> str:
    """Return the code that the fact begins with."""
    return next((code for code in (HALT, POLL) if value.startswith(code)), value)
