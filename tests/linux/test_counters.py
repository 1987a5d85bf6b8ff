"""The kernel's files as numbers, from captured ones: what is cut short or garbage is absent, never zero."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.linux import counters
from weighbridge.linux.counters import Numbers
from weighbridge.linux.process_files import disk_use, trees

DATA = Path(__file__).parents[1] / "meters/data"
CPU = partial(counters.cpu, ticks=100)
PARSERS: dict[str, Callable[[str], Numbers]] = {
    "stat.txt": CPU,
    "meminfo.txt": counters.meminfo, "net_dev.txt": counters.network, "diskstats.txt": counters.disks,
    "pressure_io.txt": partial(counters.pressure, what="io"), "loadavg.txt": counters.loadavg,
    "v1/cpu.stat": counters.cpu_stat, "v1/cpuacct.usage": counters.cpuacct, "v1/memory.stat": counters.memory_stat,
    "v1/memory.usage_in_bytes": counters.memory_now, "v1/pids.current": counters.pids,
}  # fmt: skip


def read(name: str) -> str:
    return (DATA / name).read_text()


def test_cpu_seconds_by_kind():
    assert CPU(read("stat.txt")).counters == {
        "cpu_user_share": 6321.42, "cpu_nice_share": 695.42, "cpu_system_share": 2562.48, "cpu_idle_share": 16316.09,
        "cpu_iowait_share": 178.48, "cpu_irq_share": 0.0, "cpu_softirq_share": 524.03, "cpu_steal_share": 13.41,
    }  # fmt: skip
    assert set(CPU("cpu  1 2 3 4\n").counters) == {f"cpu_{kind}_share" for kind in ("user", "nice", "system", "idle")}


def test_what_a_guest_sees_is_busy_time_and_steal():
    found = counters.guest_cpu(read("stat.txt"))
    assert found == {"guest_cpu_s": pytest.approx(6321.42 + 695.42 + 2562.48 + 524.03), "guest_steal_s": 13.41}
    assert counters.guest_cpu("") == counters.guest_cpu("cpu  1 2 3 4\n") == counters.guest_cpu("cpu  1 2 3") == {}


def test_memory_is_that_of_sar():
    levels = counters.meminfo(read("meminfo.txt")).levels
    kib = {line.split(":")[0]: int(line.split()[1]) for line in read("meminfo.txt").splitlines()}
    used = kib["MemTotal"] - kib["MemFree"] - kib["Buffers"] - kib["Cached"] - kib["Slab"]
    assert levels == {
        "memory_free_bytes": kib["MemFree"] * 1024, "memory_available_bytes": kib["MemAvailable"] * 1024,
        "memory_buffers_bytes": kib["Buffers"] * 1024, "memory_cached_bytes": kib["Cached"] * 1024,
        "memory_committed_bytes": kib["Committed_AS"] * 1024, "memory_used_bytes": used * 1024,
    }  # fmt: skip
    assert used > 0


def test_network():
    found = counters.network(read("net_dev.txt")).counters
    assert found["lo_receive_bytes_per_s"] == found["lo_transmit_bytes_per_s"] == 702195129489.0
    assert found["lo_receive_packets_per_s"] == 51836612.0
    assert {counters.device(name) for name in found} == {"lo", "ifb0", "ifb1", "eth0"}
    header = "a\nb\n"
    assert counters.network(header + "v:1@x: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n").counters == {
        "v:1@x_receive_bytes_per_s": 1, "v:1@x_receive_packets_per_s": 2, "v:1@x_receive_dropped_per_s": 4,
        "v:1@x_transmit_bytes_per_s": 9, "v:1@x_transmit_packets_per_s": 10, "v:1@x_transmit_dropped_per_s": 12,
    }  # fmt: skip


@pytest.mark.parametrize("wrong", ["x", "-1", "1.0", "٣", "9" * 21, ""])
def test_a_line_with_a_field_that_is_no_number_tells_nothing(wrong: str):
    rows = f"lo: {'1 ' * 16}\neth0: {'1 ' * 7}{wrong} {'1 ' * 8}\n"
    found = counters.network(f"a\nb\n{rows}").counters
    assert found["lo_receive_bytes_per_s"] == 1.0
    assert not [name for name in found if name.startswith("eth0")]
    assert counters.cpu(f"cpu 1 2 {wrong or 'x'} 4 5 6 7 8 0 0\n", 100).counters == {}
    assert counters.memory_stat(f"anon {wrong}\nfile 3\nshmem 1\n").levels == {}


def test_the_largest_number_of_the_kernel():
    assert counters.network(f"a\nb\nlo: {2**64 - 1} {'0 ' * 15}\n").counters["lo_receive_bytes_per_s"] == 2.0**64


def test_disks():
    found = counters.disks(read("diskstats.txt")).counters
    fields = next(line.split() for line in read("diskstats.txt").splitlines() if " vda " in line)
    assert found["disk_vda_read_bytes_per_s"] == int(fields[5]) * 512
    assert found["disk_vda_written_bytes_per_s"] == int(fields[9]) * 512
    assert found["disk_vda_busy_share"] == int(fields[12]) / 1000
    assert counters.device("disk_vda_busy_share") == "disk_vda"


@pytest.mark.parametrize("name", ["sda1", "vda15", "xvda1", "nvme0n1p2", "mmcblk0p1"])
def test_partitions_are_parts_of_disks(name: str):
    line = "8 0 NAME 1 2 3 4 5 6 7 8 9 10 11\n"
    assert counters.disks(line.replace("NAME", name)).counters == {}
    for whole in ("sda", "vda", "nvme0n1", "mmcblk0", "dm-0", "md127", "loop0"):
        assert len(counters.disks(line.replace("NAME", whole)).counters) == 5


def test_pressure():
    found = counters.pressure("some avg10=0.00 total=1500000\nfull avg10=0.00 total=250000\n", "io").counters
    assert found == {"pressure_io_some_share": 1.5, "pressure_io_full_share": 0.25}
    assert set(counters.pressure(read("pressure_cpu.txt"), "cpu").counters) == {"pressure_cpu_some_share"}


@pytest.mark.parametrize("name", PARSERS)
def test_what_is_cut_short_tells_less_but_nothing_else(name: str):
    text, parser = read(name), PARSERS[name]
    whole = parser(text)
    assert whole.counters or whole.levels
    for end in range(0, len(text), max(1, len(text) // 200)):
        cut = parser(text[:end])
        assert cut.counters.items() <= whole.counters.items()
        assert cut.levels.items() <= whole.levels.items()


@given(st.sampled_from(sorted(PARSERS)), st.text(max_size=200), st.integers(0, 300), st.integers(0, 40))
def test_any_text_is_read_without_an_error(name: str, noise: str, at: int, gone: int):
    text = read(name)
    for garbled in (noise, text[:at] + noise + text[at + gone :]):
        found = PARSERS[name](garbled)
        assert all(isinstance(value, float) for value in (*found.counters.values(), *found.levels.values()))


def test_processes_of_a_tree():
    text = read("processes.txt")
    (found,) = trees([text], 100, 4096)
    assert found == Numbers({"cpu_share": 0.0}, {"memory_anonymous_bytes": (380 + 364) * 4096.0, "pids_count": 2.0})
    line = "7 (a) b) R (x) S 1 1 1 0 -1 0 0 0 0 0 {user} 5 0 0 20 0 3 0 {start} 100 10 1\n"
    first, second = line.format(user=10, start=50), line.format(user=30, start=50).replace("7 (", "8 (")
    seen = trees([first, first + second, None, second, "", "garbage"], 100, 4096)
    assert [each and round(each.counters["cpu_share"], 2) for each in seen] == [0.15, 0.5, None, 0.5, 0.5, 0.5]
    assert [each and each.levels["pids_count"] for each in seen] == [3, 6, None, 3, 0, 0]


@given(st.lists(st.none() | st.text(max_size=100), max_size=5), st.integers(0, 600))
def test_any_processes(texts: list[str | None], end: int):
    assert len(trees([*texts, read("processes.txt")[:end]], 100, 4096)) == len(texts) + 1


IO = "rchar: 9\nwchar: 9\nsyscr: 1\nsyscw: 1\nread_bytes: {}\nwrite_bytes: {}\ncancelled_write_bytes: 0\n"


def io(**processes: tuple[int, int]) -> str:
    return "".join(f"pid: {name[1:]}\n{IO.format(*use)}" for name, use in processes.items())


def test_disk_use_of_processes_that_come_and_go():
    texts = ["", io(p7=(100, 4096)), io(p7=(150, 8192), p8=(1, 2)), io(p8=(1, 5)), None, io(p8=(0, 3)), ""]
    found = [each and tuple(each.counters.values()) for each in disk_use(texts)]
    assert found == [(0, 0), (100, 4096), (151, 8194), (151, 8197), None, (151, 8200), (151, 8200)]
    assert set(disk_use([""])[0].counters) == {"disk_read_bytes_per_s", "disk_written_bytes_per_s"}
    assert {counters.device(name) for name in disk_use([""])[0].counters} == {""}


@given(st.lists(st.none() | st.text("pid: 019read_bytswe\n²", max_size=60), max_size=5), st.integers(0, 250))
def test_any_disk_use(texts: list[str | None], end: int):
    whole = io(p7=(100, 4096), p8=(1, 2))
    found = disk_use([*texts, whole[:end]])
    assert len(found) == len(texts) + 1
    kept = [each for each in found if each is not None]
    for name in ("disk_read_bytes_per_s", "disk_written_bytes_per_s"):
        values = [each.counters[name] for each in kept]
        assert values == sorted(values) and values[0] >= 0
