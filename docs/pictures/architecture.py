"""Draw the architecture of Weighbridge: python docs/pictures/architecture.py writes two pictures to docs/_static.

``architecture.svg`` shows the way of a study. ``house.svg`` shows the packages: floors of the core, and one tower per
feature. Both have their own background, so they are readable on a light and on a dark page.
"""

from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[2]
TARGETS = ROOT / "docs/_static"
WIDTH, HEIGHT = 960, 600
HEAD = 'id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"'
STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1b1f24; }
.title { font-weight: 600; }
.note { font-size: 12px; fill: #57606a; }
.code { font: 12px ui-monospace, monospace; fill: #57606a; }
.page { fill: #ffffff; stroke: #d0d7de; }
.part { fill: #eef4fb; stroke: #5b86b8; }
.measured { fill: #f4f4f6; stroke: #8c959f; }
.launcher { fill: #fdf0d5; stroke: #c98b1b; }
.file { fill: #e9f6ec; stroke: #4c9a5f; }
.arrow { stroke: #57606a; stroke-width: 1.5; fill: none; marker-end: url(#head); }
.back { stroke-dasharray: 4 3; }
#head path { fill: #57606a; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .note, .code { fill: #a3adb8; }
  .page { fill: #161b22; stroke: #3d444d; }
  .part { fill: #16293f; stroke: #5b86b8; }
  .measured { fill: #21262d; stroke: #7d8590; }
  .launcher { fill: #3d2f10; stroke: #c98b1b; }
  .file { fill: #15301d; stroke: #4c9a5f; }
  .arrow { stroke: #a3adb8; }
  #head path { fill: #a3adb8; }
}
"""


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "middle", *, upwards: bool = False) -> str:
    """Return a line of text whose baseline is at ``y``, or that goes upwards from there."""
    turned = f' transform="rotate(-90 {x} {y})"' if upwards else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{kind}"{turned}>{escape(words)}</text>'


def box(place: tuple[float, float, float, float], kind: str, title: str = "", *lines: str) -> list[str]:
    """Return a box at (x, y, width, height) with a title and lines below it; a line with a slash is code."""
    x, y, width, height = place
    drawn = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="{kind}"/>']
    if title:
        drawn.append(text(x + width / 2, y + 22, title, "title"))
    for number, line in enumerate(lines):
        drawn.append(text(x + width / 2, y + 41 + 17 * number, line, "code" if "/" in line else "note"))
    return drawn


def arrow(*points: tuple[float, float], back: bool = False) -> str:
    """Return a line through the points with a head at its end; ``back``: dashed, for data that is read."""
    way = " L ".join(f"{x} {y}" for x, y in points)
    return f'<path d="M {way}" class="arrow{" back" if back else ""}"/>'


def site(x: float, title: str, detail: str, program: str = "program or server") -> list[str]:
    """Return an environment with its launcher and a program in it."""
    return [
        *box((x, 390, 196, 180), "measured", title, detail),
        *box((x + 14, 448, 168, 46), "launcher"),
        text(x + 98, 468, "launcher", "title"),
        text(x + 98, 485, "first process, in C", "note"),
        *box((x + 14, 516, 168, 38), "measured"),
        text(x + 98, 540, program),
        arrow((x + 98, 494), (x + 98, 514)),
    ]


FLOORS = (
    ("commands: weigh, run, report, doctor, ..., and the Python API", "cli/  api/"),
    ("terminal, page, charts, JSON, CSV", "report/"),
    ("costs, verdicts, remarks", "analysis/"),
    ("opens environments, runs trials, saves them, cleans up", "runner/  study/  store/"),
    ("where programs run", "environments/  engines/  hosts/  storage/  userland/"),
    ("what runs, and what is read", "workloads/  adapters/  meters/  facts/"),
    ("processes, statistics, and types that all share", "launcher/  linux/  statistics/  model/"),
)
"""The floors of the core from the top: what a floor does, and its packages."""


def house() -> str:
    """Return the picture of the packages. A floor uses only floors below it, and no floor uses a tower."""
    features = sorted(each.parent.name for each in ROOT.glob("src/weighbridge/features/*/__init__.py"))
    top, floor, wide = 72, 72, 480
    parts = box((1, 1, WIDTH - 2, HEIGHT - 2), "page")
    parts.append(text(24 + wide / 2, 44, "The core: what does this isolation cost here?", "title"))
    for number, (does, packages) in enumerate(FLOORS):
        y = top + floor * number
        parts += [*box((24, y, wide, floor - 8), "part", does), text(24 + wide / 2, y + 45, packages, "code")]
    width = (WIDTH - 48 - wide - 16) / len(features)
    left = 24 + wide + 16
    parts.append(text(left + width * len(features) / 2, 44, "features/: each tower can be removed", "title"))
    for number, name in enumerate(features):
        x, height = left + width * number, floor * len(FLOORS) - 8
        parts += box((x, top, width - 6, height), "file")
        parts.append(text(x + width / 2 + 2, top + height / 2, name, "title", upwards=True))
    return svg("The core of Weighbridge as floors, and its features as towers", parts)


def study_to_answer() -> str:
    """Return the picture of the way from a study to an answer."""
    parts = [
        *box((1, 1, WIDTH - 2, HEIGHT - 2), "page"),
        *box((24, 24, 196, 78), "file", "study.yaml", "or weigh -- PROGRAM,", "or a bundled study"),
        *box((264, 24, 196, 78), "part", "Command line", "asks before it starts", "cli/  study/"),
        *box((24, 150, 436, 176), "part", "Runner"),
        text(242, 191, "opens every environment, then repeats rounds", "note"),
        text(242, 208, "in random order until the costs are precise", "note"),
        text(242, 236, "trial: start server, wait until it listens, warm up,", "note"),
        text(242, 253, "measure, read outputs and counters, save", "note"),
        text(242, 281, "runner/  meters/  facts/", "code"),
        text(242, 300, "environments/  hosts/  engines/", "code"),
        *site(24, "native", "chroot on the host"),
        *site(244, "docker", "container"),
        *site(464, "qemu", "guest with its own kernel"),
        *site(740, "outside", "for workloads with a server", "client"),
        text(700, 474, "and", "note"),
        text(700, 491, "more", "note"),
        text(700, 508, "kinds", "note"),
        *box((560, 190, 170, 96), "file", "Run directory", "run.sqlite", "raw/ outputs", "store/"),
        *box((560, 24, 170, 78), "part", "Analysis", "pure functions", "analysis/  statistics/"),
        *box((774, 24, 162, 78), "part", "Report", "sentences and charts", "report/"),
        *box((774, 190, 162, 96), "file", "Answer", "terminal", "report.html", "JSON, CSV, gate"),
        arrow((220, 63), (262, 63)),
        arrow((362, 102), (362, 148)),
        arrow((122, 326), (122, 388)),
        arrow((342, 356), (342, 388)),
        arrow((562, 356), (562, 388)),
        arrow((122, 356), (838, 356), (838, 388)),
        text(452, 348, "one stream to each launcher", "note"),
        arrow((460, 238), (558, 238)),
        text(509, 228, "each trial", "note"),
        arrow((645, 190), (645, 104), back=True),
        arrow((730, 63), (772, 63)),
        arrow((855, 102), (855, 188)),
    ]  # fmt: skip
    return svg("The parts of Weighbridge, from a study to an answer", parts)


def svg(label: str, parts: list[str]) -> str:
    """Return the parts as one picture."""
    top = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
    head = f'<defs><marker {HEAD}><path d="M 0 0 L 8 4 L 0 8 z"/></marker></defs>'
    return "\n".join([top, f"<style>{STYLE}</style>", head, *parts, "</svg>\n"])


PICTURES = {"architecture.svg": study_to_answer, "house.svg": house}

if __name__ == "__main__":
    for name, picture in PICTURES.items():
        (TARGETS / name).write_text(picture())
