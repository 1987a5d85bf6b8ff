"""What the kernel counted of a trial's work, from captured texts of a kernel."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from weighbridge.linux import counters
from weighbridge.meters.events import events_of_machines, machine_events, network_events
from weighbridge.meters.host import used

DATA = Path(__file__).parent / "data"
DISKS, SOFTNET, CONNTRACK = (
    (DATA / name).read_text() for name in ("diskstats-flushes.txt", "softnet-stat.txt", "nf-conntrack-stat.txt")
)


def files(texts: Mapping[str, str]):
    """Reads these files; any other is missing."""

    def read(path: str) -> bytes:
        if path not in texts:
            raise FileNotFoundError(path)
        return texts[path].encode()

    return read


def test_flushes_and_busy_time_of_whole_disks():
    flushes = counters.disk_flushes(DISKS)
    assert flushes["vda"] == (19104.0, 30.168) and "vda1" not in flushes
    assert counters.disk_flushes(DISKS.replace(" 19104 843", "")).keys() == flushes.keys() - {"vda"}, "before 5.5"


def test_packets_that_software_interrupts_did_not_take():
    assert counters.softnet(SOFTNET) == {"softnet_drops": 2.0, "softnet_squeezes": 17.0}


def test_the_table_of_connections_counts_its_drops_on_each_cpu():
    assert counters.conntrack(CONNTRACK) == {"conntrack_drops": 6.0}


@pytest.mark.parametrize(
    "text", ["", "\n", "garbage", "0000 1\n", "zzzzzzzz zzzzzzzz zzzzzzzz\n", "00000001 00000001\n"]
)
def test_what_is_no_such_text_tells_nothing(text: str):
    assert counters.softnet(text) == counters.conntrack(text) == counters.disk_flushes(text) == {}
    assert counters.conntrack(CONNTRACK.split("\n")[0] + "\n" + text) == {}


def test_a_machine_tells_what_its_files_do():
    everything = {"/proc/net/softnet_stat": SOFTNET, "/sys/kernel/debug/kvm/exits": "812\n", "/proc/diskstats": DISKS}
    events = machine_events(files(everything), disks=True)
    assert events["vm_exits"] == 812 and events["softnet_squeezes"] == 17 and events["vda_disk_flushes"] == 19104
    assert machine_events(files(everything), disks=False).keys() == {"vm_exits", "softnet_drops", "softnet_squeezes"}
    assert machine_events(files({}), disks=True) == {}
    assert machine_events(files(dict.fromkeys(everything, "damaged")), disks=True) == {}


def test_all_network_namespaces_count_together():
    netstat, snmp = "IpExt: InNoRoutes InOctets\nIpExt: 0 9000\n", "Ip: Forwarding InReceives\nIp: 1 6\n"
    one = {
        "/proc/7/net/netstat": netstat, "/proc/7/net/snmp": snmp, "/proc/7/net/stat/nf_conntrack": CONNTRACK,
    }  # fmt: skip
    networks = {(name, "/proc/7/net/dev"): (files(one), "/proc/7/net/snmp") for name in "ab"}
    counted = {"received_octets": 18000.0, "received_packets": 12.0, "conntrack_drops": 12.0}
    assert network_events(networks) == counted
    del one["/proc/7/net/netstat"]
    assert network_events(networks) == {"conntrack_drops": 12.0}
    assert network_events({("a", "/proc/8/net/dev"): (files(one), "")}) == {}


def test_the_busiest_disk_counts_and_what_one_machine_does_not_tell_is_left_out():
    before = {"loop0_disk_flushes": 1.0, "loop0_disk_busy_s": 1.0, "vda_disk_flushes": 5.0, "vda_disk_busy_s": 9.0}
    after = {"loop0_disk_flushes": 11.0, "loop0_disk_busy_s": 1.5, "vda_disk_flushes": 13.0, "vda_disk_busy_s": 9.75}
    grown = used(before | {"softnet_drops": 3.0}, after | {"softnet_drops": 4.0})
    assert events_of_machines({"a": grown}) == {"disk_busy_s": 0.75, "disk_flushes": 10.0, "softnet_drops": 1.0}
    assert events_of_machines({"a": grown, "b": {"softnet_drops": 2.0}}) == {"softnet_drops": 3.0}
    assert events_of_machines({"a": grown, "b": {}}) == events_of_machines({}) == {}
