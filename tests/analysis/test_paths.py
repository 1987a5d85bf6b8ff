"""The network paths of a run, in what they differ, and the table of what trials used of them."""

import pytest

from report.measured_paths import measured_paths
from weighbridge.analysis.path_tables import path_tables
from weighbridge.analysis.paths import Paths, paths_of
from weighbridge.model.address import CellId
from weighbridge.model.facts import Interface, NetworkPath
from weighbridge.model.level import Level

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
    assert (unlike.baseline, unlike.here.loopback, unlike.here.mtu, unlike.here.mss) == ("native", False, 1500, 1448)
    assert (unlike.there.loopback, unlike.there.mss) == (True, 65483)
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


# -- the table ----------------------------------------------------------------------------------


def test_each_place_has_a_table_of_the_environments_that_are_measured_there():
    here, elsewhere = path_tables(measured_paths("here", "elsewhere"))
    assert (here.client, elsewhere.client) == ("here", "elsewhere")
    assert [row.environment for row in here.rows] == ["native", "port"]
    assert [row.environment for row in elsewhere.rows] == ["native"]
    assert here.metrics == (("softirq_share", "%"), ("cpu_all_per_gbit", "s/Gbit"))
    assert [row.figures for row in here.rows] == [(1.0, 1.0), (2.0, 2.0)]


def test_one_place_has_no_name_and_no_path_has_no_table():
    (table,) = path_tables(measured_paths("here"))
    assert table.client == ""
    without = measured_paths("here")
    without.paths = Paths()
    assert path_tables(without) == ()
