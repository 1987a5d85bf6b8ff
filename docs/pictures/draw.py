#!/usr/bin/env python3
"""Draw the pictures of the documentation into docs/_static: `python docs/pictures/draw.py [NAME...]`.

Pictures that show data show a kept run, or a simulation with a fixed seed. `report.png` needs chromium.
"""

import html
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "src")]
STATIC = HERE.parent / "_static"

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
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
NOTES = (
    ("the answer", r"^docker "),
    ("the cost", r"run time|command.*time"),
    ("the 95% interval", r"\[[-\d.]+, [-\d.]+\]"),
    ("the control: native against native", r"^Control"),
    ("what differs besides isolation", r"/dev/shm"),
    ("a command for more", r"weighbridge report"),
)
"""The notes of the annotated terminal, each with a pattern of the first line that it belongs to."""


def svg(width: int, height: int, parts: Iterable[str], title: str) -> str:
    """Return an SVG document on white, so that it can be read on a light page and on a dark one."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="{FONT}" font-size="14">\n'
        f"<title>{html.escape(title)}</title>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def text(
    x: float, y: float, words: str, *, anchor: str = "start", fill: str = INK, bold: bool = False, size: int = 14
) -> str:
    """Return words at a place."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}"{weight}>{html.escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str = GREY, width: float = 1, dash: str = "") -> str:
    """Return a line."""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"{dashed}/>'


def dot(x: float, y: float, colour: str, radius: float = 4) -> str:
    """Return a dot."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>'


def rounds() -> str:
    """Draw a drift that becomes a false cost in one order of trials, and cancels out in rounds."""
    count, drift, noise = 12, 0.10, 0.008
    chance = random.Random(2026)
    values = [100 * (1 + drift * place / (2 * count - 1) + chance.gauss(0, noise)) for place in range(2 * count)]
    in_rounds = [side for _ in range(count) for side in chance.sample("AB", 2)]
    panels = (("All A, then all B", ["A"] * count + ["B"] * count), ("Rounds in random order", in_rounds))
    parts = []
    for panel, (title, order) in enumerate(panels):
        left, top, width, height = 60 + panel * 400, 60, 320, 190

        def across(place: float, left: int = left) -> float:
            return left + 10 + place * (width - 20) / (2 * count - 1)

        def up(value: float) -> float:
            return top + height - (value - 97) / 17 * height

        parts += [text(left, 34, title, bold=True, size=17), line(left, top + height, left + width, top + height)]
        parts += [line(across(0), up(100), across(2 * count - 1), up(100 * (1 + drift)), LIGHT, 10)]
        if order == in_rounds:
            parts += [
                line(across(2 * k + 1.5), top, across(2 * k + 1.5), top + height, LIGHT) for k in range(count - 1)
            ]
        parts += [
            dot(across(k), up(value), BLUE if side == "A" else ORANGE)
            for k, (side, value) in enumerate(zip(order, values, strict=True))
        ]
        if order == in_rounds:
            pairs = [
                dict(zip(order[2 * k : 2 * k + 2], values[2 * k : 2 * k + 2], strict=True)) for k in range(count)
            ]
            cost = statistics.median(each["B"] / each["A"] - 1 for each in pairs) * 100
        else:
            cost = (statistics.median(values[count:]) / statistics.median(values[:count]) - 1) * 100
        parts += [
            text(
                left,
                top + height + 28,
                f"Measured cost of B: {cost:.1f}%",
                bold=True,
                fill=RED if cost > 3 else GREEN,
            )
        ]
        parts += [text(left + width, top + height + 28, "time →", anchor="end", fill=GREY)]
        parts += [
            text(left - 8, top + 12, "run", anchor="end", fill=GREY, size=12),
            text(left - 8, top + 26, "time", anchor="end", fill=GREY, size=12),
        ]
    parts += [dot(64, 314, BLUE, 5), text(76, 319, "A"), dot(104, 314, ORANGE, 5), text(116, 319, "B")]
    parts += [
        text(
            150, 319, "A and B are the same program. The machine becomes 10% slower meanwhile (simulated).", fill=GREY
        )
    ]
    return svg(
        820, 340, parts, "A drift looks like a cost if all of A runs before all of B, and cancels out in rounds"
    )


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
        f'<rect x="{across(-3):.1f}" y="{top - 20}" width="{across(3) - across(-3):.1f}" height="{bottom - top + 10}" fill="#e6f4ea"/>'
    ]
    parts += [line(across(0), top - 20, across(0), bottom - 10, INK, 1.5)]
    parts += [
        text(across(cost), bottom + 12, f"{cost}%" if cost else "no cost", anchor="middle", fill=GREY)
        for cost in (-3, 0, 3, 6, 9)
    ]
    parts += [text(across(0), top - 28, "margin of ±3%", anchor="middle", fill=GREEN)]
    for place, (verdict, colour, (low, cost, high), reason) in enumerate(rows):
        y = top + place * step + 10
        dash = "3 3" if verdict == "hidden" else ""
        parts += [text(left - 16, y + 5, verdict, anchor="end", bold=True, fill=colour)]
        parts += [line(across(low), y, across(high), y, colour, 3, dash), dot(across(cost), y, colour, 5)]
        parts += [text(right + 16, y + 5, reason)]
    return svg(870, bottom + 30, parts, "Four verdicts as intervals against zero and a margin of 3%")


def annotated() -> str:
    """Draw what `weigh` prints of the kept run, with numbered notes."""
    picture = kept_runs.terminal_picture(kept_runs.WEIGHED)
    lines = kept_runs.terminal_text(kept_runs.WEIGHED).splitlines()
    width, height = (float(each) for each in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)[0])
    top, pitch, notes = 52.5, 24.4, []
    for number, (words, pattern) in enumerate(NOTES, 1):
        row = next((row for row, each in enumerate(lines) if row > (number > 1) and re.search(pattern, each)), None)
        if row is None:
            raise SystemExit(
                f"No line of the kept run matches the note '{words}': adapt NOTES to what is printed today."
            )
        y = top + pitch * row
        x = 18 + 12.2 * len(lines[row]) + 24 if len(lines[row]) < 76 else width - 18
        notes += [f'<circle cx="{min(x, width - 18):.0f}" cy="{y:.0f}" r="12" fill="#ffd43b"/>']
        notes += [
            f'<text x="{min(x, width - 18):.0f}" y="{y + 6:.0f}" text-anchor="middle" font-family="{FONT}" font-size="16" font-weight="bold" fill="#212529">{number}</text>'
        ]
        column, line_below = (number - 1) % 2, (number - 1) // 2
        below = height + 28 + line_below * 30
        at = 30 + column * 480
        notes += [f'<circle cx="{at}" cy="{below:.0f}" r="12" fill="#ffd43b"/>']
        notes += [
            f'<text x="{at}" y="{below + 6:.0f}" text-anchor="middle" font-family="{FONT}" font-size="16" font-weight="bold" fill="#212529">{number}</text>'
        ]
        notes += [
            f'<text x="{at + 22}" y="{below + 6:.0f}" font-family="{FONT}" font-size="18" fill="#212529">{html.escape(words)}</text>'
        ]
    tall = height + 28 + 3 * 30
    picture = re.sub(r'viewBox="[^"]*"', f'viewBox="0 0 {width:g} {tall:.0f}"', picture, count=1)
    picture = picture.replace(
        "</style>", f'</style>\n<rect width="{width:g}" height="{tall:.0f}" fill="#ffffff"/>', 1
    )
    return picture.replace("</svg>", "\n".join(notes) + "\n</svg>")


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


def report() -> bytes:
    """Return a screenshot of the page of the kept run."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("report.png needs chromium.")
    with kept_runs.run_directory(kept_runs.WEIGHED) as directory, tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "report.html", Path(folder) / "report.png"
        kept_runs.write_page(directory, page)
        subprocess.run(
            [browser, "--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1100,900", "--virtual-time-budget=8000",
             f"--screenshot={shot}", page.as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip
        return shot.read_bytes()


PICTURES: dict[str, Callable[[], str | bytes]] = {
    "rounds.svg": rounds, "verdicts.svg": verdicts, "annotated.svg": annotated, "waterfall.svg": waterfall, "report.png": report,
}  # fmt: skip


def main(names: Sequence[str]) -> None:
    """Draw the pictures that are named, or all of them."""
    for name in names or PICTURES:
        drawn = PICTURES[name]()
        (STATIC / name).write_bytes(drawn if isinstance(drawn, bytes) else drawn.encode())


if __name__ == "__main__":
    main(sys.argv[1:])
