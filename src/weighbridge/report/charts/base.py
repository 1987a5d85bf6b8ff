"""What every chart shares: colours, inline data, layers.

Colours are Okabe and Ito's, which colour-blind people tell apart; the baseline and its A/A arm are grey.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from weighbridge.analysis.results import Analysis

if TYPE_CHECKING:
    import altair as alt

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#B8A800")
BASELINE, AA_ARM, BAND = "#6b7280", "#a3a9b3", "#009E73"
ROW_PX = 26
TWO_LINES = r"split(datum.label, '\n')"
"""A Vega expression that breaks an axis label at its line feeds."""


def colours(analysis: Analysis) -> dict[str, str]:
    """Give each environment its colour, the same in every chart."""
    found, turn = {}, 0
    for name in analysis.environments:
        if name in (analysis.baseline, analysis.aa_arm):
            found[name] = BASELINE if name == analysis.baseline else AA_ARM
        else:
            found[name] = PALETTE[turn % len(PALETTE)]
            turn += 1
    return found


def environment_colour(analysis: Analysis, names: Sequence[str] | None = None, *, legend: bool = True) -> "alt.Color":
    """Give the colour of the field ``environment``, of those in `names` where not all are drawn."""
    import altair as alt

    scheme = colours(analysis)
    shown = [name for name in scheme if names is None or name in names]
    below = alt.Legend(orient="top", title=None, labelLimit=260, symbolType="circle", symbolOpacity=1)
    scale = alt.Scale(domain=shown, range=[scheme[name] for name in shown])
    return alt.Color("environment:N", scale=scale, legend=below if legend else None)


class _Rows:
    """Rows that Altair takes as they are: walking through them value by value is most of its time."""

    _schema: ClassVar[dict[str, Any]] = {"type": "array"}

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def to_dict(self, *_: object, **__: object) -> list[dict[str, Any]]:
        """Give the rows."""
        return self._rows


class Canvas:
    """Layers that share their rows: each table of rows is named once, so that no copy of a chart copies its rows."""

    def __init__(self) -> None:
        self._tables: dict[str, _Rows] = {}

    def chart(self, rows: list[dict[str, Any]]) -> "alt.Chart":
        """Give a chart of rows, without marks."""
        import altair as alt

        name = f"rows-{len(self._tables) + 1}"
        self._tables[name] = _Rows(rows)
        return alt.Chart(alt.NamedData(name=name))

    def layered(self, layers: "Sequence[alt.Chart]", height: int) -> "alt.LayerChart":
        """Put layers on one another, as wide as their place and `height` pixels high."""
        import altair as alt

        return alt.LayerChart(layer=list(layers), width="container", height=height, datasets=self._tables)


@contextmanager
def unchecked() -> Iterator[None]:
    """Within it Altair does not check each part against its schema, which takes most of its time: the tests do."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        yield


def told(*fields: str) -> "list[alt.Tooltip]":
    """Give the fields that are told of a mark on which the pointer rests."""
    import altair as alt

    return [alt.Tooltip(each) for each in fields]
