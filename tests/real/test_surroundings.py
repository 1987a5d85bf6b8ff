"""What surrounds a program, as docs/reference/environments.md has it: a native site beside the machine."""

import os
import re
import resource
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.facts.surroundings import about_surroundings, room_of
from weighbridge.hosts.local import LocalHost
from weighbridge.model.command import Command
from weighbridge.model.facts import SHARED, SHARED_MEMORY, ULIMIT
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import Site, SiteRequest
from weighbridge.userland.sources.host import PLUGIN, HostRootOptions

from .conftest import open_run

RUN = "50c1a1f00d12"
DOCS = Path(__file__).parents[2] / "docs/reference/environments.md"
MIB = 2**20
_numbers = count()
PROBES = {
    "/dev/shm": "df -B1 --output=size,itotal /dev/shm | tail -1; "
    "grep ' /dev/shm ' /proc/self/mountinfo | tail -1 | cut -d' ' -f6",
    "/tmp": "df -B1 --output=size,fstype /tmp | tail -1; ls -A /tmp",
    "/run": "df -B1 --output=size,fstype /run | tail -1; ls -A /run",
    "/": "touch /weighbridge-was-here 2>/dev/null && rm /weighbridge-was-here && echo writable || echo read-only",
    "/sys": "grep ' /sys ' /proc/self/mountinfo | tail -1 | cut -d' ' -f6 | cut -d, -f1; ls /sys /sys/kernel",
    "devices": "ls /dev",
    "processes": "tr '\\0' ' ' < /proc/1/cmdline",
    "host name": "uname -n",
    "`net.*` settings": "cat /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/ip_local_port_range",
    "`ulimit`": "grep -v 'open files' /proc/self/limits",
    "open files": "ulimit -n",
    "time zone": "date +%Z%z",
    "locale": "env | grep -E '^(LANG|LC_)'",
    "variables": "env | cut -d= -f1 | grep -vE '^(PWD|SHLVL|_|OLDPWD)$' | sort",
    "standard input": "readlink /proc/self/fd/0; cat",
    "terminal": "tty; (: < /dev/tty) 2>/dev/null && echo terminal || echo none",
    "umask": "umask",
    "priority": "nice",
    "CPUs": "nproc",
}
"""What a shell tells of each row."""


def rows() -> dict[str, str]:
    """What the table says of a native site, by its first column."""
    text = DOCS.read_text().partition("## What surrounds a program")[2].partition("\n## ")[0]
    cells = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {re.sub(r"^`(/[^`]*)`$", r"\1", row[0].strip()): row[1] for row in cells[1:]}


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    with open_run(RUN) as opened:
        yield opened


def opened(run: RunContext, kind: str, shm_size: int | None = None) -> Site:
    environment, userland = registry.environments()[kind], PLUGIN.existing(HostRootOptions())
    request = SiteRequest(
        run,
        LocalHost(run.id),
        f"{next(_numbers)}-{kind}",
        "solo",
        userland,
        Limits(),
        shm_size=shm_size,
        environment=kind,
    )
    return run.stack.enter_context(environment.open(environment.options(), request))


@pytest.fixture(scope="module")
def native(run: RunContext) -> Site:
    return opened(run, "native")


def half_of_memory() -> int:
    kib = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    assert kib
    return int(kib[1]) * 512


def test_the_table_has_a_row_for_each_probe():
    assert {*rows()} == {*PROBES}


@pytest.mark.parametrize("row", PROBES)
def test_a_native_site_is_as_the_table_says(native: Site, row: str):
    """What the table calls as on the machine is compared with it, all else with what the table says it is."""
    inside = native.run(Command(("sh", "-c", PROBES[row]), 20)).text
    if rows()[row].startswith(("as on the machine", "the machine's")):
        variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        shell = ("sh", "-c", PROBES[row])
        outside = subprocess.run(shell, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, env=variables)
        assert inside == outside.stdout.decode() and inside
        return
    in_memory = f"{half_of_memory() // 4096 * 4096} tmpfs"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    said = {
        "/tmp": in_memory, "/run": in_memory, "/": "read-only", "open files": str(hard), "locale": "LANG=C.UTF-8",
        "variables": "HOME LANG PATH WEIGHBRIDGE_RUN", "standard input": "/dev/null", "terminal": "not a tty none",
        "umask": "0022", "priority": "0", "CPUs": str(os.cpu_count()),
    }  # fmt: skip
    assert " ".join(inside.split()) == " ".join(said[row].split())


USE = f"head -c {200 * MIB} /dev/zero > {SHARED}/it && wc -c < {SHARED}/it; code=$?; rm -f {SHARED}/it; exit $code"


@pytest.mark.parametrize(
    ("kind", "shm_size", "fits"),
    [
        ("native", None, True),
        ("native", 64 * MIB, False),
        ("docker", None, False),
        ("docker", 256 * MIB, True),
    ],
)
def test_a_program_that_needs_200_mib_of_shared_memory(run: RunContext, kind: str, shm_size: int | None, fits: bool):
    site = opened(run, kind, shm_size)
    done = site.run(Command(("sh", "-c", USE), 60))
    assert (done.returncode == 0) == fits, done
    assert fits or "No space left on device" in done.last_words
    if kind == "docker" or shm_size:
        assert room_of(site, SHARED) == f"{(shm_size or 64 * MIB) // MIB} MiB"
    else:
        about = os.statvfs(SHARED)
        assert room_of(site, SHARED) == f"{about.f_blocks * about.f_frsize // MIB} MiB"


def test_a_container_of_this_machines_engine_has_the_limits_of_native_programs(run: RunContext, native: Site):
    facts = [
        {key: value for key, value in about_surroundings(site).items() if key.startswith(ULIMIT)}
        for site in (native, opened(run, "docker"))
    ]
    assert facts[0] == facts[1] and len(facts[0]) > 10
    assert SHARED_MEMORY not in facts[0]
