"""The network paths of a run, in what they differ, and the table of what trials used of them."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from weighbridge.analysis.path_tables import path_tables
from weighbridge.analysis.paths import Paths, paths_of
from weighbridge.model.address import CellId
from weighbridge.model.facts import Interface, NetworkPath
from weighbridge.model.level import Level
from weighbridge.report.sections.top import path_sections
from weighbridge.report.terminal import path_parts
from weighbridge.report.text.paths import difference_words, interfaces, path_cells

LO = Interface(place="host a", name="lo", kind="loopback", mtu=65536)
VETH = Interface(place="host a", name="veth1", kind="veth", mtu=1500)
ETH0 = Interface(place="server", name="eth0", kind="veth", mtu=1500)
LOOPBACK = NetworkPath(transport="tcp", interfaces=(LO,), mss=65483)
TCP, CPU = CellId("tcp", Level()), CellId("cpu", Level())
BRIDGE = NetworkPath(transport="tcp", interfaces=(VETH, ETH0), mss=1448, translation="none")
PORT = BRIDGE.model_copy(update={"translation": "destination", "rules": 4})


def known(**paths: NetworkPath) -> Paths:
    return Paths({(name, "a"): path for name, path in paths.items()}, frozenset({"tcp"}))


def facts(**paths: NetworkPath) -> list[tuple[str, str, str, float]]:
    return [("path", f"{name}@a", path.model_dump_json(), 0.0) for name, path in paths.items()]


def test_paths_are_read_back_as_they_were_kept():
    assert paths_of(facts(native=LOOPBACK, bridge=BRIDGE), {"networked": '["tcp"]'}) == known(
        native=LOOPBACK, bridge=BRIDGE
    )


@pytest.mark.parametrize("value", ["", "{}", "[1]", '{"transport": "ipx"}', "\x00"])
def test_a_path_that_cannot_be_read_is_not_known(value: str):
    assert paths_of([("path", "native@a", value, 0.0)], {"networked": '["tcp"]'}).by_environment == {}


def test_leaving_the_loopback_interface_is_a_difference_and_translation_is_the_isolation():
    paths = known(native=LOOPBACK, bridge=BRIDGE, port=PORT)
    unlike = paths.difference(TCP, "bridge", "native")
    assert difference_words(unlike) == "MTU 1500, MSS 1448; native: loopback, MSS 65483"
    assert paths.difference(TCP, "port", "bridge") is None
    assert paths.difference(CPU, "bridge", "native") is None, "it needs no network"


def test_an_mss_of_a_loopback_connection_follows_its_window_and_is_no_difference():
    paths = known(native=LOOPBACK, host=LOOPBACK.model_copy(update={"mss": 32768}))
    assert paths.difference(TCP, "host", "native") is None


def test_a_smaller_packet_is_a_difference():
    small = NetworkPath(transport="tcp", interfaces=(ETH0.model_copy(update={"mtu": 1450}),), mss=1398)
    assert known(native=BRIDGE, overlay=small).difference(TCP, "overlay", "native")


def test_a_comparison_without_a_path_is_none():
    paths = known(native=LOOPBACK)
    assert paths.missing(TCP, "native", "bridge")
    assert not paths.missing(TCP, "native") and not paths.missing(CPU, "native", "bridge")
    assert not Paths().missing(TCP, "native", "bridge"), "from before paths were recorded"


def test_the_client_of_a_level():
    paths = Paths({("native", "here"): LOOPBACK, ("native", "there"): BRIDGE}, frozenset({"tcp"}))
    assert paths.of("native", Level([("client", "there")])) == BRIDGE
    assert paths.of("native", Level([("client", "here"), ("clients", "3")])) == LOOPBACK


def test_words():
    assert interfaces(BRIDGE) == "host: veth; server: veth"


# -- the table ----------------------------------------------------------------------------------

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
    rows = [SimpleNamespace(environment=name, value=value) for name, value in values.items() if name != "native"]
    return SimpleNamespace(
        workload="tcp", level=level, metric=metric, unit=unit, baseline_value=values["native"], comparisons=rows
    )


def analysis(*clients: str, other: str = "port") -> Any:
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
    return SimpleNamespace(
        labels=tuple(reports), of=lambda label: reports[label], paths=Paths(known, frozenset({"tcp"})),
        baseline="native", environments=("native", other, "native-again"), aa_arm="native-again",
    )  # fmt: skip


def test_each_place_has_a_table_of_the_environments_that_are_measured_there():
    here, elsewhere = path_tables(analysis("here", "elsewhere"))
    assert (here.client, elsewhere.client) == ("here", "elsewhere")
    assert [row.environment for row in here.rows] == ["native", "port"]
    assert [row.environment for row in elsewhere.rows] == ["native"]
    assert here.metrics == (("softirq_share", "%"), ("cpu_all_per_gbit", "s/Gbit"))
    assert [row.figures for row in here.rows] == [(1.0, 1.0), (2.0, 2.0)]


def test_one_place_has_no_name_and_no_path_has_no_table():
    (table,) = path_tables(analysis("here"))
    assert table.client == ""
    without = analysis("here")
    without.paths = Paths()
    assert path_tables(without) == () and path_sections(without) == [] and list(path_parts(without)) == []


def test_the_page_has_the_mechanism_beside_the_figures():
    section, _ = path_sections(analysis("here", "elsewhere"))
    native, port = section.table.rows
    assert len(section.table.heads) == len(native) == len(port)
    assert port[1:6] == ["host: veth", "1500 / 1448", "DNAT", "1", "3 (OUTPUT)"]


def terminal(given: Any, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as said:
        console.print(*path_parts(given), sep="\n")
    return said.get()


@pytest.mark.parametrize(
    "name", ["port", "docker-published-userland", "podman-rootless-slirp4netns-published", "x" * 40]
)
def test_no_head_and_no_name_is_cut_in_a_terminal(name: str):
    said = terminal(analysis("here", other=name), 80)
    assert all(len(line) <= 80 for line in said.splitlines())
    for word in ("environment", "interfaces", "translation", "routers", "rules", "matched", "DNAT", name):
        assert word in said.split(), said
    wide = terminal(analysis("here", other=name), 200)
    assert wide.count("translation") == 1 and wide.count("environment") == 2 and "rules matched" in wide


LONG = "xen-beside (inside Xen's first domain inside QEMU, TCG: emulated; Xen PV inside QEMU, TCG: emulated)"


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("name", ["port", LONG, "x" * 60])
def test_long_names_fold_and_every_figure_stands_beside_them(name: str, width: int):
    given = analysis("here", other=name)
    given.of("tcp (client=here)")[1].comparisons[0].value = 12400.0
    said = terminal(given, width)
    assert "…" not in said and all(len(line) <= width for line in said.splitlines())
    assert {"host:", "veth", "1448", "65483", "DNAT", "3", "2.00", "12,400", *name.split()} - {"x" * 60} <= {
        *re.split("[ \n]+", said)
    }
    assert said.count("x" * 20) >= (3 if name == "x" * 60 else 0)


def test_columns_in_which_nothing_is_are_left_out_of_the_terminal():
    given = analysis("here")
    plain = PORT_PATH.model_copy(update={"translation": "none", "routers": 0, "rules": 0, "hooks": ()})
    local = LOOPBACK_PATH.model_copy(update={"routers": 0})
    given.paths = Paths({("native", "here"): local, ("port", "here"): plain}, frozenset({"tcp"}))
    said = terminal(given, 80)
    assert "MTU / MSS" in said and "routers" not in said
    given.paths = Paths({("native", "here"): LOOPBACK_PATH, ("port", "here"): plain}, frozenset({"tcp"}))
    said = terminal(given, 80)
    assert "routers" in said, "not known of all"
    assert "translation" not in said and "matched" not in said


def test_the_mss_of_a_proxied_path_is_that_of_the_connection_to_the_proxy():
    given = analysis("here", other="user")
    proxied = PORT_PATH.model_copy(update={"translation": "proxy", "mss": 50688})
    given.paths = Paths({("native", "here"): LOOPBACK_PATH, ("user", "here"): proxied}, frozenset({"tcp"}))
    (section,) = path_sections(given)
    assert section.table.rows[1][2:4] == ["1500 / MSS to the proxy 50688", "by a proxy"]
    unlike = given.paths.difference(TCP, "user", "native")
    assert unlike is not None
    assert difference_words(unlike) == "MTU 1500, MSS to the proxy 50688; native: loopback, MSS 65483"


@pytest.mark.parametrize(
    ("rules", "unseen", "cell"),
    [(3, 0, "3 (OUTPUT)"), (3, 18, "3 (OUTPUT); 18 without a counter"), (None, 0, "–")],
)
def test_rules_that_cannot_be_seen_are_told_beside_those_that_were_crossed(rules: int | None, unseen: int, cell: str):
    path = PORT_PATH.model_copy(update={"rules": rules, "unseen_rules": unseen})
    assert path_cells(SimpleNamespace(environment="port", path=path))[-1] == cell
