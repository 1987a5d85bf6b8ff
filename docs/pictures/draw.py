#!/usr/bin/env python3
"""Draw the pictures of the documentation into docs/_static: `python docs/pictures/draw.py [NAME...]`.

Pictures that show data show a kept run, or a simulation with a fixed seed. `report.png` needs chromium.
"""

import html
import math
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weighbridge.analysis.results import Comparison

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "src")]
STATIC = HERE.parent / "_static"
COUNT, DRIFT = 12, 0.10
"""The simulated trials of each program, and how much slower the machine becomes in their course."""

import kept_runs  # noqa: E402

INK, GREY, LIGHT, BLUE, ORANGE, GREEN, RED = (
    "#1f2933",
    "#7b8794",
    "#e4e7eb",
    "#2166ac",
    "#d95f02",
    "#2b8a3e",
    "#c92a2a",
)
BROWSER_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--hide-scrollbars",
    "--window-size=1100,900",
    "--virtual-time-budget=8000",
)
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
NOTES = (
    ("the answer", r"^docker "),
    ("the cost", r"run time|command.*time"),
    ("the 95% interval", r"\[.+\]"),
    ("the control: native against native", r"^Control"),
    ("what differs besides isolation", "dev.shm"),
    ("a command for more", r"weighbridge report"),
)
"""The notes of the annotated terminal, each with a pattern of the first line that it belongs to."""


def svg(width: int, height: int, parts: Iterable[str], title: str) -> str:
    """Return an SVG document on white, so that it can be read on a light page and on a dark one."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="{FONT}" font-size="14">\n'
        f"<title>{html.escape(title)}</title>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def text(
    x: float, y: float, words: str, anchor: str = "start", fill: str = INK, *, bold: bool = False, px: int = 14
) -> str:
    """Return words at a place."""
    style = f'text-anchor="{anchor}" fill="{fill}" font-size="{px}"' + (' font-weight="bold"' if bold else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{html.escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str = GREY, width: float = 1, dash: str = "") -> str:
    """Return a line."""
    style = f'stroke="{colour}" stroke-width="{width}"' + (f' stroke-dasharray="{dash}"' if dash else "")
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def dot(x: float, y: float, colour: str, radius: float = 4) -> str:
    """Return a dot."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>'


def rounds() -> str:
    """Draw a drift that becomes a false cost in one order of trials, and cancels out in rounds."""
    chance = random.Random(2026)  # noqa: S311
    values = [100 * (1 + DRIFT * place / (2 * COUNT - 1) + chance.gauss(0, 0.008)) for place in range(2 * COUNT)]
    in_rounds = "".join(side for _ in range(COUNT) for side in chance.sample("AB", 2))
    pairs = [dict(zip(in_rounds[k : k + 2], values[k : k + 2], strict=True)) for k in range(0, 2 * COUNT, 2)]
    apart = statistics.median(values[COUNT:]) / statistics.median(values[:COUNT]) - 1
    paired = statistics.median(each["B"] / each["A"] - 1 for each in pairs)
    parts = [*_order(60, "All A, then all B", "A" * COUNT + "B" * COUNT, values, apart)]
    parts += _order(460, "Rounds in random order", in_rounds, values, paired)
    parts += [
        line(x := 470 + (k + 0.5) * 300 / (2 * COUNT - 1), 60, x, 250, LIGHT) for k in range(1, 2 * COUNT - 2, 2)
    ]
    parts += [dot(64, 314, BLUE, 5), text(76, 319, "A"), dot(104, 314, ORANGE, 5), text(116, 319, "B")]
    about = "A and B are the same program. The machine becomes 10% slower meanwhile (simulated)."
    return svg(
        820,
        340,
        [*parts, text(150, 319, about, fill=GREY)],
        "The order of trials decides whether a drift looks like a cost",
    )


def _order(left: float, title: str, order: str, values: Sequence[float], cost: float) -> list[str]:
    """Return one order of trials, with the cost of B that it shows."""
    places = [
        (left + 10 + k * 300 / (len(order) - 1), 250 - (value - 97) / 17 * 190) for k, value in enumerate(values)
    ]
    drift = [250 - (value - 97) / 17 * 190 for value in (100, 100 * (1 + DRIFT))]
    colour = RED if abs(cost) > 0.03 else GREEN
    return [
        text(left, 34, title, bold=True, px=17),
        line(left, 250, left + 320, 250),
        line(left + 10, drift[0], left + 310, drift[1], LIGHT, 10),
        *(dot(x, y, BLUE if side == "A" else ORANGE) for (x, y), side in zip(places, order, strict=True)),
        text(left, 278, f"Measured cost of B: {cost * 100:.1f}%", bold=True, fill=colour),
        text(left + 320, 278, "time →", "end", GREY),
        text(left - 8, 72, "run", "end", GREY, px=12),
        text(left - 8, 86, "time", "end", GREY, px=12),
    ]


def verdicts() -> str:
    """Draw four intervals against zero and a margin of 3%."""
    rows = (
        ("slower", RED, (4.0, 6.0, 8.0), "the whole interval is above zero"),
        ("within ±3%", GREEN, (-1.2, 0.4, 1.9), "the whole interval is within the margin"),
        ("undecided", GREY, (-1.5, 2.0, 5.5), "zero and a cost that matters are both possible"),
        ("hidden", GREY, (-0.5, 0.0, 0.5), "the same limit holds both sides, such as a full cable"),
    )
    left, right, top, step = 150, 480, 60, 52
    bottom = top + step * len(rows)

    def across(cost: float) -> float:
        return left + (cost + 5) / 15 * (right - left)

    parts = [
        f'<rect x="{across(-3):.1f}" y="{top - 20}" width="{across(3) - across(-3):.1f}" '
        f'height="{bottom - top + 10}" fill="#e6f4ea"/>'
    ]
    parts += [line(across(0), top - 20, across(0), bottom - 10, INK, 1.5)]
    parts += [
        text(across(cost), bottom + 12, f"{cost}%" if cost else "no cost", "middle", fill=GREY)
        for cost in (-3, 0, 3, 6, 9)
    ]
    parts += [text(across(0), top - 28, "margin of ±3%", "middle", fill=GREEN)]
    for place, (verdict, colour, (low, cost, high), reason) in enumerate(rows):
        y = top + place * step + 10
        dash = "3 3" if verdict == "hidden" else ""
        parts += [text(left - 16, y + 5, verdict, "end", bold=True, fill=colour)]
        parts += [line(across(low), y, across(high), y, colour, 3, dash), dot(across(cost), y, colour, 5)]
        parts += [text(right + 16, y + 5, reason)]
    return svg(870, bottom + 30, parts, "Four verdicts as intervals against zero and a margin of 3%")


def annotated() -> str:
    """Draw what `weigh` prints of the kept run, with numbered notes."""
    picture = kept_runs.terminal_picture(kept_runs.WEIGHED)
    lines = kept_runs.terminal_text(kept_runs.WEIGHED).splitlines()
    width, height = (float(each) for each in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)[0])
    notes = []
    for number, (words, pattern) in enumerate(NOTES, 1):
        row = next((row for row, each in enumerate(lines) if row > 0 and re.search(pattern, each)), None)
        if row is None:
            raise SystemExit(
                f"No line of the kept run fits the note '{words}': adapt NOTES to what is printed today."
            )
        notes += _badge(number, min(42 + 12.2 * len(lines[row]), width - 18), 52.5 + 24.4 * row)
        x, y = 30 + (number - 1) % 2 * 480, height + 28 + (number - 1) // 2 * 30
        notes += [*_badge(number, x, y), text(x + 22, y + 6, words, px=18)]
    tall = height + 28 + 3 * 30
    picture = re.sub(r'viewBox="[^"]*"', f'viewBox="0 0 {width:g} {tall:.0f}"', picture, count=1)
    picture = picture.replace(
        "</style>", f'</style>\n<rect width="{width:g}" height="{tall:.0f}" fill="#ffffff"/>', 1
    )
    return picture.replace("</svg>", f'<g font-family="{FONT}">\n' + "\n".join(notes) + "\n</g></svg>")


def _badge(number: int, x: float, y: float) -> list[str]:
    """Return a number in a circle."""
    circle = f'<circle cx="{x:.0f}" cy="{y:.0f}" r="12" fill="#ffd43b"/>'
    return [circle, text(x, y + 6, str(number), "middle", bold=True, px=16)]


def waterfall() -> str:
    """Draw the explanation of a kept run, as its page shows it."""
    from weighbridge.analysis.analyse import analyse
    from weighbridge.report.charts.explanation import explained
    from weighbridge.report.charts.svg import static_svg
    from weighbridge.store.run import RunStore

    with kept_runs.run_directory("tutorial-why") as directory, RunStore(directory) as store:
        analysis = analyse(store)
        charts = [explained(analysis, each) for each in analysis.explanations]
    chart = next(each for each in charts if each is not None)
    drawn = str(static_svg(chart, 760)).replace(' aria-hidden="true"', f' color="{INK}"')
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)[0]
    return drawn.replace('">', f'">\n<rect width="{width}" height="{height}" fill="#ffffff"/>', 1) + "\n"


def sandboxes() -> str:
    """Draw the costs of the kept run of agent-sandboxes: a row for each sandbox, a column for each step."""
    from weighbridge.analysis.analyse import analyse
    from weighbridge.report.text.matrix import matrix
    from weighbridge.report.text.metric_names import metric_name
    from weighbridge.store.run import RunStore

    with kept_runs.run_directory("agent-sandboxes") as directory, RunStore(directory) as store:
        analysis = analyse(store)
        costs, study = matrix(analysis), analysis.study
    columns = [*costs.rows, *costs.further]
    reports = [column.reports[0] for column in columns]
    shown = {
        name: [None if (cell := column.cells[place]) is None else cell.rows[0][1] for column in columns]
        for place, name in enumerate(costs.environments)
    }
    rounds = max(each.blocks for row in shown.values() for each in row if each is not None)
    order = sorted(shown, key=lambda name: 0.0 if shown[name][0] is None else _penalty(shown[name][0]))
    left, top, wide, tall, first = 150, 120, 68, 34, 90
    right = left + first + wide * (len(columns) - 1)
    parts = [
        text(20, 34, "How much longer do a coding agent's commands take in a sandbox?", bold=True, px=19),
        text(20, 58, f"weighbridge run {study}: {rounds} rounds on a virtual machine with two CPUs", fill=GREY),
    ]
    for place, report in enumerate(reports):
        x = left + first / 2 if place == 0 else left + first + wide * (place - 0.5)
        words = re.sub("^c build", "C build", metric_name(report)).split(" ")
        for number, word in enumerate(words):
            y = top - 12 - 15 * (len(words) - 1 - number)
            parts.append(text(x, y, word, "middle", bold=place == 0, px=13))
    for row, name in enumerate(order):
        y = top + row * tall
        parts.append(text(left - 12, y + 22, name, "end", bold=True))
        for place, compared in enumerate(shown[name]):
            x, width = (left, first) if place == 0 else (left + first + wide * (place - 1), wide)
            fill, words, ink = _heat(compared)
            parts.append(
                f'<rect x="{x + 1}" y="{y + 1}" width="{width - 2}" height="{tall - 2}" rx="3" fill="{fill}"/>'
            )
            parts.append(text(x + width / 2, y + 22, words, "middle", ink, bold=place == 0))
    y = top + len(order) * tall + 26
    notes = (
        "≤: undecided; this is the upper end of the 95% interval.  ≈: within ±3%.",
        "The sandbox is opened once and stays open. Its start is not part of the times.",
    )
    parts += [text(20, y + 20 * number, words, fill=GREY, px=13) for number, words in enumerate(notes)]
    return svg(right + 20, y + 36, parts, "The cost of each sandbox for each step of an agent's session")


def _penalty(compared: "Comparison | None") -> float:
    return compared.cost.penalty.estimate if compared is not None and compared.cost is not None else 0.0


def _heat(compared: "Comparison | None") -> tuple[str, str, str]:
    """Return the colour, the words and the ink of a cell."""
    if compared is None or compared.cost is None:
        return "#ffffff", "", GREY
    if compared.shown_as != "different":
        at_most = f"≤ {math.ceil(compared.cost.penalty.high)}%"
        return "#f5f7fa", "≈" if compared.shown_as == "equivalent" else at_most, GREY
    ratio = 1 + _penalty(compared) / 100
    words = f"{ratio:.1f} ×" if ratio >= 1.5 else f"{_penalty(compared):+.0f}%"
    share = min(abs(math.log(ratio)) / math.log(20), 1.0)
    red = [round(255 + (end - 255) * (0.15 + 0.85 * share)) for end in (0xC9, 0x2A, 0x2A)]
    return f"rgb({red[0]},{red[1]},{red[2]})", words, "#ffffff" if share > 0.45 else INK


def report() -> bytes:
    """Return a screenshot of the page of the kept run."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("report.png needs chromium.")
    with kept_runs.run_directory(kept_runs.WEIGHED) as directory, tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "report.html", Path(folder) / "report.png"
        kept_runs.write_page(directory, page)
        subprocess.run(
            [browser, *BROWSER_OPTIONS, f"--screenshot={shot}", page.as_uri()], check=True, capture_output=True
        )
        return shot.read_bytes()


PICTURES: dict[str, Callable[[], str | bytes]] = {
    "rounds.svg": rounds, "verdicts.svg": verdicts, "annotated.svg": annotated, "waterfall.svg": waterfall,
    "agent-sandboxes.svg": sandboxes,
    "report.png": report,
}  # fmt: skip


def main(names: Sequence[str]) -> None:
    """Draw the pictures that are named, or all of them."""
    for name in names or PICTURES:
        drawn = PICTURES[name]()
        (STATIC / name).write_bytes(drawn if isinstance(drawn, bytes) else drawn.encode())


if __name__ == "__main__":
    main(sys.argv[1:])
