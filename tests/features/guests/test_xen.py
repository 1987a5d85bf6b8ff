"""A domain of Xen: what xl is told, what it says (captured from Xen 4.17 on a guest host), and its console."""

import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.features.guests import kernel
from weighbridge.features.guests.console import last_words
from weighbridge.features.guests.environments.xen import _JOIN, PLUGIN, XenOptions, _require_memory, console
from weighbridge.features.guests.environments.xen.domain import (
    DRIVERS,
    Domain,
    DomainInterface,
    info_of,
    is_ending,
    memory_of_xen,
    reason_of,
    use_of,
)
from weighbridge.features.guests.hosts.guest.options import GuestOptions
from weighbridge.features.guests.xen_domains import domains_in, name_of
from weighbridge.hosts.bridge import Bridge
from weighbridge.hosts.kinds.testbed import TestbedOptions as Testbed
from weighbridge.hosts.options import SshOptions
from weighbridge.model.environment import Needs
from weighbridge.model.host import Host
from weighbridge.model.names import RunId

DATA = Path(__file__).parent / "data/xen"
MIB = 2**20
RUN = RunId("7e57d057a0e1")
BRIDGE = cast(Bridge, type("FakeBridge", (), {"name": "wb-57a0e1-b0", "gateway": "198.19.219.1", "mtu": 1500}))
KEPT = "/var/cache/weighbridge/programs"
DOMAIN = Domain(
    name=name_of(RUN, 8),
    type="pv",
    kernel=f"{KEPT}/4b37ad587701fad5c25512b00c98ee80/vmlinux",
    ramdisk=f"{KEPT}/b6acce39baeb14bda858d4769e6aaf4c/ramdisk",
    vcpus=1,
    memory=256 * MIB,
    disks=("/dev/vdd",),
    script=f"{KEPT}/b361b7f14e83217fca0a1f7975fca715/_xen_join.sh",
    interface=DomainInterface("wb-57a0e1-p7", BRIDGE, "198.19.219.9"),
    emulated=True,
    open_files=20000,
)


def test_the_configuration_is_one_that_a_domain_was_started_with():
    assert DOMAIN.config() == (DATA / "pv.cfg").read_text().rstrip("\n")


def test_what_differs_between_the_types_of_domains():
    pvh, hvm = replace(DOMAIN, type="pvh").config(), replace(DOMAIN, type="hvm").config()
    assert 'cpuid = "host,rdtscp=0"' in pvh and "cpuid" not in DOMAIN.config()
    assert "tsc_mode" not in replace(DOMAIN, emulated=False, type="pvh").config()
    assert "xen_platform_pci = 1" in hvm and "xen_platform_pci" not in pvh


def test_limits_and_data_are_told_too():
    told = replace(DOMAIN, cap=50, cpus="0-1", disks=("/dev/vdd", "/d/a,b.ext4")).config()
    assert "cap = 50" in told and 'cpus = "0-1"' in told
    assert f'"format=raw,vdev=xvdf,access=w,script={DOMAIN.script},target=/d/a,b.ext4"' in told
    words = replace(DOMAIN, disks=("/dev/vdd", "/d/data")).command_line()
    assert words[words.index("--data") + 1] == "/dev/xvdf"
    assert len(words[words.index("--") + 1 :]) <= 32
    assert {*DRIVERS} <= {*kernel.DRIVERS}
    assert "vif" not in replace(DOMAIN, interface=None).config()


def test_where_a_cable_has_no_offloads_the_script_that_joins_it_hears_so():
    plain = replace(DOMAIN, interface=replace(DOMAIN.interface, offloads=False))
    assert plain.creator == ("env", "WEIGHBRIDGE_OFFLOADS=tso off gso off gro off")
    assert plain.config() == DOMAIN.config()
    assert DOMAIN.creator == () == replace(DOMAIN, interface=None).creator
    assert "ethtool -K" in _JOIN.read_text() and "$WEIGHBRIDGE_OFFLOADS" in _JOIN.read_text()


@pytest.mark.parametrize("path", ['/a"b', "/a'b", "/a\nb", "/a\\b"])
def test_a_path_that_xl_cannot_be_told_is_refused(path: str):
    with raises_sentence(Unavailable):
        replace(DOMAIN, kernel=path).config()


def test_what_xl_lists_of_a_domain():
    listed = (DATA / "list.txt").read_text()
    assert use_of(listed, name_of(RUN, 2)) == {"cpu_s": 10.0, "memory_bytes": 256.0 * MIB}
    assert use_of(listed, "Domain-0") == {"cpu_s": 273.9, "memory_bytes": 768.0 * MIB}
    assert use_of(listed, "other") == {} == use_of("", "Domain-0")
    assert domains_in(listed) == [(RUN, name_of(RUN, 2))] and domains_in("") == []


def test_a_list_that_was_cut_tells_nothing_wrong():
    listed, name = (DATA / "list.txt").read_text(), name_of(RUN, 2)
    for end in range(len(listed)):
        found = use_of(listed[:end], name).get("cpu_s")
        assert found is None or found == 10.0 or listed[:end].endswith(".0") is False, listed[:end]


def test_what_xl_says_of_the_hypervisor():
    info = info_of((DATA / "info.txt").read_text())
    assert (info["free_memory"], info["xen_version"], info["xen_scheduler"]) == ("1000", "4.17.7", "credit2")
    assert info["xen_changeset"] == "" and info_of("") == {}


def test_memory_for_domains_is_xens():
    printed = (DATA / "info.txt").read_text()
    assert memory_of_xen(printed) == {"total": 2047 * MIB, "available": 1000 * MIB}
    assert memory_of_xen("") == {} == memory_of_xen("free_memory            : \n")


def test_the_message_of_a_domain_that_could_not_be_made_has_its_reason():
    assert reason_of((DATA / "no-disk.txt").read_bytes()) == (
        "killing execution of /etc/xen/scripts/block add because of timeout"
    )
    assert reason_of(b"") == ""


def test_what_a_kernel_says_as_it_comes_up_is_no_reason_for_its_end():
    warning = b"[    0.312345] ACPI Error: No handler or method for GPE 05, disabling event (20220331/evgpe-839)\n"
    assert reason_of(warning) == ""
    assert reason_of((DATA / "no-disk.txt").read_bytes() + warning).startswith("killing execution of")
    panic = b"[   12.345678] Kernel panic - not syncing: sysrq triggered crash\n"
    assert reason_of(panic + warning + b"libxl: error: libxl_domain.c:1183:f: Domain 3:gone\n") == (
        "Kernel panic - not syncing: sysrq triggered crash"
    )


@given(st.binary(max_size=200), st.binary(max_size=200), st.integers(1, 50))
def test_the_stream_begins_behind_its_line_wherever_pieces_end(before: bytes, after: bytes, size: int):
    if console.FOLLOWS in before + console.FOLLOWS[:-1]:
        return
    whole, made = before + console.FOLLOWS + after, console.Console()
    text, stream = b"", b""
    for at in range(0, len(whole), size):
        more = made.feed(whole[at : at + size])
        text, stream = text + more[0], stream + more[1]
    assert (text, stream) == (before, after)


def test_the_kernels_last_words_are_found_among_frames():
    made = console.Console()
    made.feed(b"[    1.100000] early\r\n" + console.FOLLOWS + b"\x00\x0fframe\xff")
    panic = b"[   12.345678] Kernel panic - not syncing: sysrq triggered crash\r\n[   12.345679] CPU: 0\r\n"
    assert made.feed(panic)[1] == panic
    assert last_words(made.last_words()) == "Kernel panic - not syncing: sysrq triggered crash"
    assert console.Console().last_words() == b""


@given(st.binary())
def test_what_the_kernel_would_take_for_a_command_reaches_the_launcher(data: bytes):
    assert re.sub(rb"\x0f\x0f", b"\x0f", console.escaped(data)) == data


def test_it_is_one_text_that_needs_nothing_of_ours():
    text = Path(console.__file__).read_text()
    compile(text, "<text>", "exec")
    assert "weighbridge." not in text and len(text) < 2**16  # it is one word of a command


LISTED = (
    "Name                                        ID   Mem VCPUs\tState\tTime(s)\n"
    "Domain-0                                     0   640     2     r-----     213.9\n"
    "weighbridge-6e57d057a0e1-1                   1   192     1     {state}      25.1\n"
)


@pytest.mark.parametrize(
    ("state", "ending"), [("r-----", False), ("-b----", False), ("--p---", False), ("--psc-", True), ("----cd", True)]
)
def test_a_domain_that_ends_is_told_from_one_that_is_silent(state: str, ending: bool):
    listed = LISTED.format(state=state)
    assert is_ending(listed, "weighbridge-6e57d057a0e1-1") is ending
    assert use_of(listed, "weighbridge-6e57d057a0e1-1")["cpu_s"] == 25.1
    assert is_ending(listed, "weighbridge-6e57d057a0e1-2")


def test_only_xens_first_domain_holds_it():
    options = XenOptions()

    def problems(**hosts: type) -> list[str]:
        return PLUGIN.check(options, needs=Needs(hosts={name: kind.traits for name, kind in hosts.items()}))

    assert not problems(lab=GuestOptions) and not PLUGIN.check(options, needs=Needs())
    assert "first domain" in problems(lab=Testbed)[0] and "first domain" in problems(lab=SshOptions)[0]
    assert "attach: interface" in PLUGIN.check(options, needs=Needs(network=True, separate_hosts=True))[0]
    assert "cannot carry" in PLUGIN.check(XenOptions(network="none"), needs=Needs(network=True))[0]
    assert "'attach'" in PLUGIN.check(XenOptions(network="none", attach="interface"), needs=Needs())[0]
    assert "emulated" in PLUGIN.unverified()


def test_a_first_domain_that_has_all_memory_is_told_how_it_gets_a_fixed_part():
    host = cast(Host, type("FakeHost", (), {"name": "lab"}))
    _require_memory(DOMAIN, {"free_memory": "256"}, host)
    with raises_sentence(Unavailable):
        _require_memory(DOMAIN, {"free_memory": "3"}, host)


def test_readiness_names_what_brings_it():
    state = PLUGIN.ready()
    assert state.ready or (state.remedy.startswith("apt-get install xen-system-amd64") and "Xen" in state.detail)
