"""A screen of a terminal: the required lines, the longest body that fits, and as many remarks as fit."""

from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

LINES = 25
"""The lines of a result on a terminal; everything else is shown on request."""
REMARK_LINES = 4
"""Lines that are left to the first remarks that fit into them, before the body has any."""


def print_screen(
    console: Console,
    head: Sequence[RenderableType],
    bodies: Iterable[Sequence[RenderableType]],
    remarks: Sequence[RenderableType],
    foot: Callable[[int], Sequence[Text]],
    *,
    further: Sequence[RenderableType] = (),
) -> None:
    """Print at most `LINES` lines: `head`, the first of the `bodies` that fits, remarks in order, and `foot`.

    `bodies` become shorter and shorter; the last one is printed whatever its height. `foot` gets the number of
    remarks that did not fit; its lines are never broken, so that they can be copied. `further` was requested, and is
    printed before the foot whatever its length.
    """

    def height(parts: Iterable[RenderableType]) -> int:
        return sum(len(console.render_lines(part, pad=False)) for part in parts)

    below = sum(max(1, -(-line.cell_len // console.width)) for line in foot(len(remarks)))
    room = LINES - height(head) - below
    least = 0
    for remark in remarks:
        least += lines if least + (lines := height([remark])) <= REMARK_LINES else 0
    body: Sequence[RenderableType] = ()
    for body in bodies:
        if height(body) <= room - least:
            break
    room -= height(body)
    shown = []
    for remark in remarks:
        lines = height([remark])
        if lines <= room:
            shown.append(remark)
            room -= lines
    for part in (*head, *body, *shown, *further):
        console.print(part)
    for line in foot(len(remarks) - len(shown)):
        console.print(line, soft_wrap=True)
