"""Stand-ins for an analysis of which only the network paths and their figures are read."""

from functools import partial
from types import SimpleNamespace
from typing import Any

from weighbridge.analysis.paths import Paths
from weighbridge.analysis.results import Analysis
from weighbridge.model.address import CellId
from weighbridge.model.facts import Interface, NetworkPath
from weighbridge.model.level import Level

TCP_CELL = CellId("tcp", Level())
LO_HERE = Interface(place="host here", name="lo", kind="loopback", mtu=65536)
VETH_HERE = Interface(place="host here", name="veth1", kind="veth", mtu=1500)
LOOPBACK_PATH = NetworkPath(transport="tcp", interfaces=(LO_HERE,), mss=65483, rules=0, hooks=())
PORT_PATH = NetworkPath(
    transport="tcp",
    interfaces=(VETH_HERE,),
    mss=1448,
    translation="destination",
    routers=1,
    rules=3,
    hooks=("nat OUTPUT",),
)


def report(metric: str, unit: str, level: Level, values: dict[str, float]) -> Any:
    others = {name: value for name, value in values.items() if name != "native"}
    rows = [SimpleNamespace(environment=name, against="native", value=value) for name, value in others.items()]
    return SimpleNamespace(
        workload="tcp", level=level, metric=metric, unit=unit, baseline_value=values["native"], comparisons=rows
    )


def measured_paths(*clients: str, other: str = "port") -> Any:
    """Two environments for the clients of each host; the ``other`` is measured with those of the first alone."""
    reports = {}
    for number, client in enumerate(clients):
        level = Level([("client", client)])
        values = {"native": 1.0 + number} | ({other: 2.0} if not number else {})
        reports[f"tcp (client={client})"] = (
            report("throughput", "Mbit/s", level, values), report("cpu_all_per_gbit", "s/Gbit", level, values),
            report("softirq_share", "%", level, values),
        )  # fmt: skip
    reports["cpu"] = (SimpleNamespace(workload="cpu", level=Level(), metric="events", comparisons=()),)
    known = {
        (name, client): path for client in clients for name, path in (("native", LOOPBACK_PATH), (other, PORT_PATH))
    }
    analysis: Any = SimpleNamespace(
        labels=tuple(reports), of=lambda label: reports[label], paths=Paths(known, frozenset({"tcp"})),
        baseline="native", environments=("native", other, "native-again"), aa_arm="native-again",
    )  # fmt: skip
    analysis.references = partial(Analysis.references, analysis)
    return analysis
