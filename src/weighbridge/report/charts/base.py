"""What every chart shares: its definition in Vega-Lite, colours, tables of rows, layers.

Colours are Okabe and Ito's, which colour-blind people tell apart; the baseline and its A/A arm are grey.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.analysis.results import Analysis

Field = dict[str, Any]
"""A part of a definition: an encoding, or a layer."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#B8A800")
BASELINE, AA_ARM, BAND = "#6b7280", "#a3a9b3", "#009E73"
ROW_PX = 26


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


def environment_colour(analysis: Analysis, names: Collection[str] | None = None) -> Field:
    """Give the colour of the field ``environment``, of those in `names` where not all are drawn."""
    scheme = colours(analysis)
    return colour_of("environment", {name: scheme[name] for name in scheme if names is None or name in names})


def colour_of(field: str, scheme: Mapping[str, str], **more: Any) -> Field:
    """Give the colour of a field by its name; the page has the legend."""
    scale = {"domain": list(scheme), "range": list(scheme.values())}
    return nominal(field, scale=scale, legend=None, **more)


@dataclass(frozen=True, slots=True)
class Chart:
    """A definition in Vega-Lite, and its height in pixels.

    Definitions are written as Vega-Lite itself: Altair takes 25 ms for each, and a page has hundreds. The tests
    check them against Vega-Lite's schema.
    """

    definition: Mapping[str, Any]
    height: int


class Canvas:
    """Layers that share their rows: each table of rows is in the definition once."""

    def __init__(self) -> None:
        self._tables: dict[str, list[dict[str, Any]]] = {}

    def rows(self, rows: list[dict[str, Any]]) -> dict[str, str]:
        """Give rows a name, by which layers refer to them."""
        name = f"rows-{len(self._tables) + 1}"
        self._tables[name] = rows
        return {"name": name}

    def layered(self, layers: Sequence[Field], height: int) -> Chart:
        """Put layers on one another, as wide as their place and `height` pixels high."""
        definition = {"width": "container", "height": height, "datasets": self._tables, "layer": list(layers)}
        return Chart(definition, height)


def layer(rows: Mapping[str, str], mark: str, /, style: Mapping[str, Any] | None = None, **encoding: Any) -> Field:
    """Return a layer of rows with a mark, its `style` and what is encoded how."""
    return {"data": rows, "mark": {"type": mark, **(style or {})}, "encoding": encoding}


def quantitative(field: str, **more: Any) -> Field:
    """Return the encoding of a field by its size."""
    return {"field": field, "type": "quantitative", **more}


def nominal(field: str, **more: Any) -> Field:
    """Return the encoding of a field by its name."""
    return {"field": field, "type": "nominal", **more}


def rule_at(rows: Mapping[str, str], x: Field) -> Field:
    """Return the dashed line that marks no cost."""
    return layer(rows, "rule", {"color": BASELINE, "strokeDash": [4, 3]}, x=x)


def short(value: float) -> float:
    """Return four digits of a value: more than the height of a small chart can show."""
    return float(f"{value:.4g}")
