"""What `weighbridge weigh --against` names: an older program, or an older image with the same words."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weighbridge.cli.output import WRONG_COMMAND_LINE, fail

if TYPE_CHECKING:
    from weighbridge.study.weighed import Earlier

Userland = Callable[[str], Mapping[str, Any]]
"""Where an image is."""
EntryPoint = Callable[[Mapping[str, Any]], Sequence[str]]


def server_behind(entry_point: Sequence[str], server: str) -> str:
    """The command line of a server whose words an image has its own in front of."""
    return " ".join([shlex.join(entry_point), server]).strip()


def earlier_image(
    given: str, command: Sequence[str], server: str | None, userland: Userland, entry_point: EntryPoint
) -> "Earlier":
    """The same words in another image, behind that image's own entry point."""
    from weighbridge.study.weighed import Earlier

    where = userland(given)
    before = entry_point(where)
    if server is not None:
        return Earlier(where, server=server_behind(before, server))
    return Earlier(where, command=[*before, *command])


def earlier_program(given: str, *, server: bool, shell: bool) -> "Earlier":
    """Another program of this machine: the server where there is one, whose client is the same."""
    from weighbridge.study.weighed import Earlier

    if server:
        return Earlier(server=given)
    if shell:
        return Earlier(command=[given])
    try:
        words = shlex.split(given)
    except ValueError as error:
        fail(f"--against: {error}", WRONG_COMMAND_LINE)
    if not words:
        fail("--against: name a program", WRONG_COMMAND_LINE)
    return Earlier(command=words)
