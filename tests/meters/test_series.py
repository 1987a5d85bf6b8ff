"""Readings as series: rates stand at the end of their interval, and what was not read is not there."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from weighbridge.linux.cgroup_files import network_of, processes_of
from weighbridge.meters.readings import Readings
from weighbridge.meters.scopes import HOST_FILES, Order
from weighbridge.meters.series import series

DATA = Path(__file__).parent / "data"


def made(texts: dict[str, list[str | None]], at: tuple[float, ...] = (0.0, 1.0, 3.0), offset: float = 0.0):
    found = series(Readings(at, texts), offset)
    return {(each.place, each.name): (each.at_s, each.values) for each in found}


def test_counters_become_rates_and_levels_stay():
    found = made({"server/cpuacct.usage": ["0\n", "500000000\n", "2500000000\n"],
                  "server/memory.current": ["4096\n", "8192\n", "4096\n"]}, offset=10.0)  # fmt: skip
    assert found == {
        ("server", "cpu_share"): ((11.0, 13.0), (0.5, 1.0)),
        ("server", "memory_bytes"): ((10.0, 11.0, 13.0), (4096.0, 8192.0, 4096.0)),
    }


def test_what_could_not_be_read_is_no_point():
    found = made({"client/cpuacct.usage": ["0\n", None, "3000000000\n"], "client/pids.current": [None, "7\n", "x\n"]})
    assert found == {("client", "cpu_share"): ((3.0,), (1.0,)), ("client", "pids_count"): ((1.0,), (7.0,))}
    assert made({"client/cpuacct.usage": [None] * 3, "client/unknown": ["1\n"] * 3, "bare": ["1\n"] * 3}) == {}


def test_zero_is_a_value():
    assert made({"server/cpuacct.usage": ["5\n"] * 3}) == {("server", "cpu_share"): ((1.0, 3.0), (0.0, 0.0))}


def test_a_counter_that_goes_back_gives_no_rate_there():
    found = made({"server/cpuacct.usage": ["1000000000\n", "0\n", "2000000000\n"]})
    assert found == {("server", "cpu_share"): ((3.0,), (1.0,))}


def test_two_readings_at_almost_the_same_time_give_no_rate():
    assert made({"server/cpuacct.usage": ["1\n", "9\n"]}, (1.0, 1.0)) == {}
    texts = {"server/cpuacct.usage": ["0\n", "1000000000\n", "9000000000\n"], "server/pids.current": ["1\n"] * 3}
    found = made(texts, (0.0, 1.0, 1.01))
    assert found["server", "cpu_share"] == ((1.0,), (1.0,))
    assert found["server", "pids_count"][0] == (0.0, 1.0, 1.01), "a level needs no time between"


def test_an_interface_that_was_never_used_has_no_series():
    row = "{}: {} 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    texts = ["a\nb\n" + row.format("lo", n) + row.format("x", 0).replace(" 1 ", " 0 ") for n in (0, 8, 24)]
    found = made({"host a/net": texts})
    assert found["host a", "lo_receive_bytes_per_s"] == ((1.0, 3.0), (8.0, 8.0))
    assert found["host a", "lo_transmit_bytes_per_s"] == ((1.0, 3.0), (0.0, 0.0)), "it was used the other way"
    assert not [name for _, name in found if name.startswith("x_")]


def test_an_interface_that_comes_later_and_one_that_goes():
    row = "{}: {} 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    texts = ["a\nb\n" + row.format(*one) + row.format(*other) for one, other in (
        (("a", 0), ("b", 0)), (("a", 8), ("c", 4)), (("a", 8), ("c", 8)), (("a", 8), ("c", 8)),
    )]  # fmt: skip
    found = made({"host x/net": texts}, (0.0, 1.0, 2.0, 3.0))
    assert found["host x", "a_receive_bytes_per_s"] == ((1.0, 2.0, 3.0), (8.0, 0.0, 0.0))
    assert found["host x", "c_receive_bytes_per_s"] == ((2.0, 3.0), (4.0, 0.0))
    assert ("host x", "b_receive_bytes_per_s") not in found, "it was read once"


def test_captured_files_of_a_host():
    names = {"stat": "stat", "meminfo": "meminfo", "net": "net_dev", "diskstats": "diskstats", "loadavg": "loadavg",
             **{f"pressure.{what}": f"pressure_{what}" for what in ("cpu", "memory", "io")}}  # fmt: skip
    assert names.keys() == HOST_FILES.keys()
    texts = {f"host a/{what}": [(DATA / f"{file}.txt").read_text()] * 2 for what, file in names.items()}
    found = made(texts, (0.0, 1.0))
    assert {place for place, _ in found} == {"host a"}
    assert {name for _, name in found} >= {
        "cpu_user_share", "cpu_idle_share", "memory_committed_bytes", "memory_used_bytes", "lo_receive_bytes_per_s",
        "disk_vda_busy_share", "disk_vda_read_bytes_per_s", "load1", "pressure_io_full_share",
    }  # fmt: skip
    assert {len(values) for (_, name), (_, values) in found.items() if name.endswith("_share")} == {1}


@given(
    st.dictionaries(
        st.sampled_from(["h/stat", "h/net", "s/cpu.stat", "s/processes", "s/memory.stat", "s/x", ""]),
        st.lists(st.none() | st.text(max_size=60), min_size=3, max_size=3),
    )
)
def test_any_texts(texts: dict[str, list[str | None]]):
    for each in series(Readings((0.0, 0.5, 1.0), texts)):
        assert len(each.at_s) == len(each.values) > 0


def test_what_is_read_of_a_host_with_sites():
    sites = {"server": {"cpu.stat": "/g/cpu.stat", **network_of(7)}, "client": processes_of(8)}
    order = Order.of(sites, "a")
    files, most, slow = order.files, order.most, order.slow
    assert files["host a/stat"] == "/proc/stat"
    assert files["server/net"] == "/proc/7/net/dev"
    assert files["client/processes"] == "/proc/8/ns/mnt"
    assert most.keys() <= files.keys()
    assert len(files) == len(HOST_FILES) + 3
    assert set(slow) == {f"host a/{name}" for name in ("diskstats", "loadavg")} | {
        f"host a/pressure.{what}" for what in ("cpu", "memory", "io")
    }
    sites["server"]["cpuacct.usage"] = "/g/cpuacct.usage"
    assert "server/cpu.stat" in Order.of(sites, "a").slow, "there it has only the throttling"
