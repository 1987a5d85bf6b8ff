"""Dashboards and captured /metrics texts, read for the tests. No process is started here."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MONITORING = Path(__file__).parents[2] / "monitoring"
DASHBOARDS = sorted((MONITORING / "grafana/dashboards").glob("*.json"))
DATA = Path(__file__).parent / "data"
CAPTURED = {
    "host": ("node-exporter.txt", "process-exporter.txt"),
    "containers": ("cadvisor-container.txt", "cadvisor-group.txt"),
    "costs": ("weighbridge-costs.txt",),
    "run": ("weighbridge.txt",),
}
"""What each dashboard draws: texts that the real programs answered, shortened."""
KEYWORDS = {"by", "without", "on", "ignoring", "group_left", "group_right", "offset", "bool", "and", "or", "unless"}
VARIABLES = re.compile(r"\$\{?(\w+)\}?")


@dataclass(frozen=True)
class Query:
    """One query of a dashboard, and where in it."""

    where: str
    expr: str
    legend: str = ""


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """All of them, those inside collapsed rows too, without the rows."""
    inner = [panel for row in dashboard["panels"] for panel in row.get("panels", ())]
    return [panel for panel in (*dashboard["panels"], *inner) if panel["type"] != "row"]


def queries(dashboard: dict[str, Any]) -> Iterator[Query]:
    """Of panels, annotations and variables."""
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield Query(f"{panel['title']} {target['refId']}", target["expr"], target["legendFormat"])
    for annotation in dashboard["annotations"]["list"]:
        if annotation.get("builtIn") != 1:
            legend = annotation["titleFormat"] + annotation["textFormat"]
            yield Query(f"annotation {annotation['name']}", annotation["target"]["expr"], legend)
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
            yield Query(f"variable {variable['name']}", metric, f"{{{{{label}}}}}")


def filled(expr: str, window: str = "15s") -> str:
    """As Grafana sends it: with every variable at "All"."""
    return VARIABLES.sub(".*", expr.replace("$__rate_interval", window))


def _without_texts(expr: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', expr)


def metrics(expr: str) -> set[str]:
    """The metrics that a query names: what is neither function, keyword, label nor text."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", _without_texts(expr))
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    words = set(re.findall(r"(?<![\w:.])[a-zA-Z_:][\w:]*(?!\w*\s*\()", bare))
    return words - KEYWORDS


def labels(query: Query) -> set[str]:
    """The labels that a query and its legend speak of."""
    bare = _without_texts(query.expr)
    inside = " ".join(re.findall(r"\{([^}]*)\}", bare))
    grouped = " ".join(re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", bare))
    shown = re.findall(r"\{\{\s*(\w+)\s*\}\}", query.legend)
    return {*re.findall(r"(\w+)\s*(?:=|!)", inside), *re.findall(r"\w+", grouped), *shown}


def made_labels(expr: str) -> set[str]:
    """The labels that ``label_replace`` makes, of a part of another one or of a word of its own."""
    return set(re.findall(r',\s*"(\w+)",\s*"(?:\$\d|\w+)",\s*"\w+",', expr))


def exposed(*names: str) -> dict[str, set[str]]:
    """The metrics of captured texts, with the labels that each has."""
    found: dict[str, set[str]] = {}
    for line in _lines(names):
        if match := re.match(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+(?: \d+)?$", line):
            inside = re.sub(r'"(?:[^"\\]|\\.)*"', '""', match[2] or "")
            found.setdefault(match[1], set()).update(re.findall(r'(\w+)=""', inside))
    return found


def common(*names: str) -> set[str]:
    """The labels that everything in one of the captured texts has: the exporter gives them to all that it serves."""
    return set().union(*(set.intersection(*exposed(name).values()) for name in names))


def kinds(*names: str) -> dict[str, str]:
    """The kind of each metric of captured texts: counter, gauge or untyped."""
    return {line.split()[2]: line.split()[3] for line in _lines(names) if line.startswith("# TYPE ")}


def _lines(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from (DATA / name).read_text(encoding="utf-8").splitlines()


def as_rates(expr: str) -> set[str]:
    """The metrics that a query takes the rate or increase of."""
    return set(re.findall(r"\b(?:rate|increase)\((\w+)", expr))
