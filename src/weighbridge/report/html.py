"""The page: one file that needs no network. Every value is escaped, and no script but our own can run.

Whatever comes from a study, a program or a machine passes Jinja's autoescape; chart definitions are JSON in inert
script elements with every ``<``, ``>`` and ``&`` written as an escape, so that no text can end the element. A content
security policy in the page forbids every connection.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from weighbridge.report import charts
from weighbridge.report.analysis import analyse
from weighbridge.report.content import Analysis, Comparison, MetricReport, TrialRow
from weighbridge.report.numbers import cost_text, plain, quantity, share
from weighbridge.report.sentences import (
    NOTHING,
    baseline_sentence,
    disagreements,
    exploratory_sentence,
    imprecise,
    noise_sentence,
    printable,
    remark_lines,
    trust_sentence,
    verdict_sentences,
)
from weighbridge.statistics import cost_percent
from weighbridge.store.run import RunStore

EXCERPT_BYTES = 4096
"""How much of each output is in the page."""

ALL_EXCERPTS_BYTES = 1_200_000
"""How much of all outputs together: with many trials each excerpt becomes shorter (never below 256 bytes)."""

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Output:
    """One raw output of a trial: its link from the page, its size in bytes, and how it begins."""

    name: str
    link: str
    size: int
    excerpt: str


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a trial."""

    role: str
    command: str
    returncode: int
    duration_s: float
    outputs: tuple[Output, ...]


def write_html(store: RunStore, path: Path, analysis: Analysis | None = None) -> Path:
    """Write the report of a run as one offline file and give its path; links to raw outputs are relative to it.

    `analysis` saves the time of making it again.

    Raises OSError where the file cannot be written.
    """
    page = _render(store, analysis or analyse(store), path)
    path.write_text(page, encoding="utf-8", errors="replace")
    return path


def _render(store: RunStore, analysis: Analysis, path: Path) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(quantity=quantity, plain=plain, share=share, clean=printable)
    specs: dict[str, str] = {}
    sections = list(_sections(analysis, specs))
    top = _chart(specs, charts.overview(analysis, legend=False))
    return environment.get_template("report.html.j2").render(
        analysis=analysis,
        nothing=NOTHING,
        top=top,
        colours=charts.colours(analysis),
        sentences=verdict_sentences(analysis),
        disagreements=disagreements(analysis),
        noise=noise_sentence(analysis),
        exploratory=exploratory_sentence(analysis),
        trust=trust_sentence(analysis),
        banner=_banner(analysis),
        sections=sections,
        specs={name: Markup(spec) for name, spec in specs.items()},  # noqa: S704 - made safe by _json
        groups=_groups(analysis),
        processes=_processes(store, path),
        facts=_facts(store),
        info=_info(store),
        style=Markup((TEMPLATES / "report.css").read_text()),  # noqa: S704 - our own file
        script=Markup((TEMPLATES / "report.js").read_text()),  # noqa: S704 - our own file
        library=Markup(_library() if specs else ""),  # noqa: S704 - Vega as vl-convert ships it
    )


def _banner(analysis: Analysis) -> str:
    """The class of the banner on trust: neutral where nothing is wrong, but the session sees too little."""
    if analysis.trust.trusted is False:
        return "banner untrusted"
    return "banner trusted" if analysis.trust.trusted and not imprecise(analysis) else "banner"


@cache
def _library() -> str:
    """Give Vega, Vega-Lite and Vega-Embed as one script, from the copy inside vl-convert."""
    import vl_convert
    from altair.utils._importers import vl_version_for_vl_convert

    script = str(
        vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=vl_version_for_vl_convert())
    )
    if "</script" in script.lower() or "<!--" in script:
        raise AssertionError("the chart library holds text that would end its script element")
    return script


# -- costs and charts ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Drawn:
    """The place of one chart in the page: the id of its definition, and its height in pixels (0: no chart)."""

    id: str
    height: int


def _chart(specs: dict[str, str], chart: Any) -> Drawn:
    """Add a chart's definition to `specs` and give its place."""
    if chart is None:
        return Drawn("", 0)
    name = f"chart-{len(specs) + 1}"
    specs[name] = _json(chart.to_dict(validate=False))
    return Drawn(name, int(chart.height) + 60)


def _json(value: object) -> str:
    """Give JSON that is safe inside a script element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII only: U+2028 is escaped too
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _sections(analysis: Analysis, specs: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Per workload and level what the template shows: its metrics with their rows and charts."""
    without = {"exploratory"} if analysis.exploratory else set()
    for cell, label in enumerate(analysis.labels):
        shown: list[dict[str, Any]] = []
        seen: set[str] = set()
        for report in analysis.of(label):
            shown.append({
                "report": report,
                "name": report.metric.replace("_", " "),
                "baseline": baseline_sentence(report, analysis.baseline),
                "baseline_link": _group_id(analysis, cell, analysis.baseline),
                "remarks": remark_lines(report, seen, without),
                "rows": [_row(analysis, cell, report, row) for row in report.comparisons],
                "forest": _chart(specs, charts.forest(analysis, report)),
                "caption": charts.caption(analysis, report),
                "runs": _chart(specs, charts.runs(analysis, report, legend=False)),
                "distribution": _chart(specs, charts.distribution(analysis, report)),
            })  # fmt: skip
        more = ", ".join(each["name"] for each in shown[1:])
        yield {"id": f"w{cell}", "label": label, "metrics": shown, "more": more}


def _group_id(analysis: Analysis, cell: int, environment: str) -> str:
    return f"g{cell}-{analysis.environments.index(environment)}"


def _row(analysis: Analysis, cell: int, report: MetricReport, row: Comparison) -> dict[str, Any]:
    tried = any(t.label == report.label and t.environment == row.environment for t in analysis.trials)
    return {
        "row": row,
        "cost": cost_text(row, report.unit),
        "verdict": row.verdict_words,
        "link": _group_id(analysis, cell, row.environment) if tried else "",
        **_beside(row),
    }


def _beside(row: Comparison) -> dict[str, str]:
    """The figures beside the typical cost: means, slow runs, adjusted p-value."""
    cost = row.cost
    means = {"geometric": "–", "arithmetic": "–"}
    if cost is not None and cost.scale == "ratio":
        for name, interval in (("geometric", cost.geometric), ("arithmetic", cost.arithmetic)):
            if interval is not None:
                means[name] = f"{cost_percent(interval, cost.better).estimate:.1f} %"
    slow = row.slow
    rate = f"{slow.slow} of {slow.runs} (95 %: at most {100 * slow.high:.0f} % of runs)" if slow else "–"
    return {**means, "slow": rate, "p": "–" if row.adjusted_p is None else plain(row.adjusted_p, 2)}


# -- trials and machine ----------------------------------------------------------------------------


def _groups(analysis: Analysis) -> list[dict[str, Any]]:
    """The trials by workload, level and environment: what the numbers of the tables link to."""
    units = {(m.label, m.metric): m.unit for m in analysis.metrics}
    groups = []
    for cell, label in enumerate(analysis.labels):
        for environment in analysis.environments:
            mine = [t for t in analysis.trials if t.label == label and t.environment == environment]
            if mine:
                name = _group_id(analysis, cell, environment)
                rows = [(trial, _values(trial, units)) for trial in mine]
                groups.append({"id": name, "label": label, "environment": environment, "trials": rows})
    return groups


def _values(trial: TrialRow, units: Mapping[tuple[str, str], str]) -> str:
    return ", ".join(
        f"{metric} {quantity(value, units[trial.label, metric])}" for metric, value in trial.values.items()
    )


def _processes(store: RunStore, path: Path) -> dict[int, list[Process]]:
    import shlex

    rows: list[Any] = store.processes()
    files = [(row, name) for row in rows for name in ("stdout", "stderr")]
    sizes = {row[name]: _size(store.directory / row[name]) for row, name in files}
    limit = EXCERPT_BYTES
    while limit > 256 and sum(min(size, limit) for size in sizes.values()) > ALL_EXCERPTS_BYTES:
        limit //= 2
    found: dict[int, list[Process]] = {}
    for row in rows:
        outputs = tuple(
            Output(
                name, _link(store.directory / row[name], path), sizes[row[name]], _excerpt(store, row[name], limit)
            )
            for name in ("stdout", "stderr")
            if sizes[row[name]]
        )
        command = shlex.join(str(word) for word in row["argv"])
        found.setdefault(row["trial"], []).append(
            Process(row["role"], command, row["returncode"], row["duration_s"], outputs)
        )
    return found


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _link(target: Path, page: Path) -> str:
    relative = os.path.relpath(target.resolve(), page.resolve().parent)
    return quote(relative.replace(os.sep, "/"), safe="/.")


def _excerpt(store: RunStore, name: str, limit: int) -> str:
    with (store.directory / name).open("rb") as file:
        return printable(file.read(limit).decode(errors="replace"))


def _facts(store: RunStore) -> dict[str, list[tuple[str, str]]]:
    """Scope -> its facts, the latest value of each key."""
    scopes: dict[str, dict[str, str]] = {}
    for scope, key, value, _ in store.facts():
        scopes.setdefault(scope, {})[key] = value
    return {scope: list(facts.items()) for scope, facts in scopes.items()}


def _info(store: RunStore) -> list[tuple[str, str]]:
    """The run's own keys, without those that have a place of their own."""
    own = {"study", "question", "study_text", "created"}
    info = store.info()
    created = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(float(info.get("created", 0))))
    rest = [(key.replace("_", " "), value) for key, value in info.items() if key not in own]
    return [("created", created), *rest, ("study file", info.get("study_text", ""))]
