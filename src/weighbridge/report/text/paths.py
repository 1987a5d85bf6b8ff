"""The table "What changes on the path" in words: its heads and cells, for the terminal and the page."""

from collections.abc import Sequence

from weighbridge.analysis.path_tables import PathMechanism, PathTable
from weighbridge.analysis.paths import ClientPlace, PathDifference, PathFigures, ProxiedFigures
from weighbridge.model.address import grouped
from weighbridge.model.facts import NetworkPath
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import plain
from weighbridge.report.text.metric_names import column_head

TITLE = "What changes on the path"
INTRODUCTION = (
    "A probe sent data before the first trial; the table lists the interfaces and packet-filter rules whose counters"
    " rose. Counters miss three things: a bridge between two of its own ports, the inside of an overlay network, and"
    " nftables rules without a counter. Figures are medians over the trials; CPU is the whole machine's, above idle."
)
HEADS = ("environment", "interfaces", "MTU / MSS", "translation", "routers", "rules matched")
"""Heads of the columns about the path. Rules belong to the hosts' packet filters."""
_TRANSLATIONS = {
    "none": "none",
    "source": "SNAT",
    "destination": "DNAT",
    "source and destination": "SNAT, DNAT",
    "proxy": "by a proxy",
}


def title(table: PathTable) -> str:
    """Return a table's title: where its clients are, if the study has them in several places."""
    return f"{TITLE}, {place_words(table.place)}" if table.place else TITLE


def place_words(place: ClientPlace) -> str:
    """Return where clients are: ``clients on b, with the server``."""
    return {
        "this-machine": "local clients",
        "beside-the-server": f"clients on {place.host}, with the server",
        "elsewhere": "remote clients",
        "on-a-host": f"clients on {place.host}",
    }[place.kind]


def difference_words(difference: PathDifference) -> str:
    """Return the difference between two paths: ``MTU 1450, MSS 1398; native: loopback, MSS 65483``."""
    return f"{_path_words(difference.here)}; {display_name(difference.baseline)}: {_path_words(difference.there)}"


def _path_words(path: PathFigures) -> str:
    where = "loopback" if path.loopback else f"MTU {path.mtu or 'unknown'}"
    mss = "MSS to the proxy" if isinstance(path, ProxiedFigures) else "MSS"
    sizes = f"{where}, {mss} {path.mss}" if path.mss else where
    return f"{sizes}, no segmentation offload" if path.segmentation is False else sizes


def interfaces(path: NetworkPath) -> str:
    """Return the interfaces by place in the order of the path: ``host: veth, bridge; server: veth``."""
    if path.loopback:
        return "loopback"
    by_place: dict[str, list[str]] = {}
    for each in path.interfaces:
        by_place.setdefault(each.place, []).append(each.name if each.kind == "other" else each.kind)
    hosts = [place for place in by_place if place.startswith("host ")]
    named = {place: "host" if len(hosts) == 1 else place.removeprefix("host ") for place in hosts}
    kinds_by_place = "; ".join(f"{named.get(place, place)}: {', '.join(kinds)}" for place, kinds in by_place.items())
    return f"{kinds_by_place} (mixed with other traffic)" if path.uncertain else kinds_by_place


def figure_heads(table: PathTable) -> list[str]:
    """Return the heads of the figures' columns, with their units: ``CPU of the machine, s/Gbit``."""
    return [column_head(metric, unit) for metric, unit in table.metrics]


def path_cells(row: PathMechanism) -> list[str]:
    """Return the cells of the columns in `HEADS`."""
    path = row.path
    sizes = " / ".join("–" if size is None else str(size) for size in (path.mtu, path.mss))
    if path.translation == "proxy" and path.mss is not None:
        sizes = f"{'–' if path.mtu is None else path.mtu} / MSS to the proxy {path.mss}"
    routers = "–" if path.routers is None else str(path.routers)
    return [
        display_name(row.environment),
        interfaces(path),
        sizes,
        _TRANSLATIONS[path.translation],
        routers,
        _rules(path),
    ]


def figure_cells(row: PathMechanism) -> list[str]:
    """Return the figures in the units of their heads; a figure that was not measured is a dash."""
    return ["–" if value is None else plain(value, 3) for value in row.figures]


def first_of_each_client(tables: Sequence[PathTable]) -> list[list[PathTable]]:
    """Return the tables in groups of the same clients, whose paths are the same."""
    return list(grouped(tables, lambda table: table.client).values())


def _rules(path: NetworkPath) -> str:
    if path.rules is None or path.hooks is None:
        return "–"
    chains = dict.fromkeys(hook.split()[-1] for hook in path.hooks)
    crossed = f"{path.rules} ({', '.join(chains)})" if chains else str(path.rules)
    return f"{crossed}; {path.unseen_rules} without a counter" if path.unseen_rules else crossed
