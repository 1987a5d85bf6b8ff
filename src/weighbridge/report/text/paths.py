"""The table "What changes on the path" in words: its heads and cells, for the terminal and the page."""

from collections.abc import Sequence

from weighbridge.analysis.formatting import plain
from weighbridge.analysis.path_table import Mechanism, PathTable
from weighbridge.analysis.paths import interfaces
from weighbridge.model.path import NetworkPath

TITLE = "What changes on the path"
INTRODUCTION = (
    "Probed before the first trial: the interfaces and netfilter rules whose counters rose while data were sent."
    " A bridge counts no frames that it forwards, and an overlay's own namespace is not looked into: neither is here."
    " The figures are medians of the trials; CPU is that of the whole machine beyond its idle level."
)
HEADS = ("environment", "interfaces", "MTU / MSS", "translation", "routers", "rules matched")
"""Of the columns about the path. Rules: of the hosts' packet filters."""
_TRANSLATIONS = {
    "none": "none",
    "source": "SNAT",
    "destination": "DNAT",
    "source and destination": "SNAT, DNAT",
    "proxy": "by a proxy",
}
_FIGURES = {
    "tcp_retransmits_per_": "retransmits",
    "softirq_share": "softirq share",
    "cpu_all_per_": "CPU of all",
    "context_switches_per_": "context switches",
}


def title(table: PathTable) -> str:
    """Return a table's title: where its clients are, if the study has them in several places."""
    return f"{TITLE}, {table.place}" if table.place else TITLE


def figure_heads(table: PathTable) -> list[str]:
    """Return the heads of the figures' columns, with their units: ``CPU of all, s/Gbit``."""
    found = []
    for name, unit in table.metrics:
        words = next(words for start, words in _FIGURES.items() if name.startswith(start))
        found.append(f"{words}, {unit.replace('1/', 'per ')}")
    return found


def path_cells(row: Mechanism) -> list[str]:
    """Return the cells of the columns in `HEADS`."""
    path = row.path
    sizes = " / ".join("–" if size is None else str(size) for size in (path.mtu, path.mss))
    routers = "–" if path.routers is None else str(path.routers)
    return [row.environment, interfaces(path), sizes, _TRANSLATIONS[path.translation], routers, _rules(path)]


def figure_cells(row: Mechanism) -> list[str]:
    """Return the figures in the units of their heads; what was not measured is a dash."""
    return ["–" if value is None else plain(value, 3) for value in row.figures]


def first_of_each_client(tables: Sequence[PathTable]) -> list[list[PathTable]]:
    """Return the tables in groups of the same clients, whose paths are the same."""
    groups: dict[str, list[PathTable]] = {}
    for table in tables:
        groups.setdefault(table.client, []).append(table)
    return list(groups.values())


def _rules(path: NetworkPath) -> str:
    if path.rules is None or path.hooks is None:
        return "–"
    chains = dict.fromkeys(hook.split()[-1] for hook in path.hooks)
    return f"{path.rules} ({', '.join(chains)})" if chains else str(path.rules)
