"""Why an environment costs what it does: each mechanism is off where it is to be, by what its sites say."""

import json
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge.model.userland import UserlandSpec
from weighbridge.userland.build import ensure, key_of
from weighbridge.userland.sources.packages import PackagesOptions

from .machine import Machine
from .weighing import NATIVE, trials, weighbridge, write_study

PUBLISHED = "published: {kind: docker, network: bridge, publish: true, publish_on: loopback, apparmor: unconfined}"
LATENCY = "rr: {kind: netperf, test: TCP_RR, duration: 1s}"
LIMITED = (
    "limited: {kind: docker, network: none, apparmor: unconfined, open_files: 256, "
    "variables: {MALLOC_ARENA_MAX: '1'}, resources: {cpus: 0.5, cpu_period: 200ms}}"
)
BUSY = "busy: {kind: command, shell: true, run: 'n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done'}"
OFF = {
    "docker-proxy": ([], "proxy", "destination"),
    "address-translation": (["docker-proxy"], "destination", "none"),
    "seccomp": ([], "filter", "off"),
    "own-network": (["docker-proxy", "address-translation"], "ipc mnt net pid uts", "ipc mnt pid uts"),
}


SETTINGS = (
    "kind: {kind}, network: none, seccomp: unconfined, capabilities: none, no_new_privileges: true,"
    " cgroup_namespace: private, pids_limit: 100, init: true, shm_size: 8MiB"
)
CONTAINERS = tuple(f"{kind}: {{{SETTINGS.replace('{kind}', kind)}}}" for kind in ("docker", "podman"))
SHORT = "short: {kind: command, run: 'true'}"
IN_NAMESPACE = (
    "inside: {kind: podman, network: none, seccomp: unconfined, apparmor: unconfined, user_namespace: true,"
    " storage: directory}"
)
WRITES = "writes: {kind: command, shell: true, run: 'echo > /srv/file'}"


def explanation(machine: Machine, tmp_path: Path, *run: str | Path) -> tuple[Path, Any]:
    """Run a study whose cost is explained; return the run's directory and what its report says."""
    directory = tmp_path / "run"
    done = weighbridge("run", *run, "--out", directory, "--yes")
    assert done.code == 0, done
    machine.must_be_unchanged()
    (explained,) = json.loads(weighbridge("report", directory, "--json").stdout)["explanations"]
    return directory, explained


@pytest.mark.long
@pytest.mark.promise("each mechanism that explain switches off is off by what its sites say")
def test_each_mechanism_is_off_where_it_is_to_be(machine: Machine, tmp_path: Path):
    environments, explain = (NATIVE, PUBLISHED), ("explain: true",)
    study = write_study(tmp_path, environments=environments, workloads=(LATENCY,), blocks=6, aa=True, further=explain)
    run, explained = explanation(machine, tmp_path, study)
    assert len(trials(run)) == 6 * 8 and {row["outcome"] for row in trials(run)} == {"ok"}
    found = {each["kind"]: each for each in explained["mechanisms"]}
    assert found.keys() == OFF.keys()
    for kind, (off_with, with_it, without) in OFF.items():
        proof = found[kind]["proof"]
        assert sorted(found[kind]["off_with"]) == sorted(off_with)
        assert proof["state"] == "shown" and (proof["with"], proof["without"]) == (with_it, without)
        assert found[kind]["cost"]["rounds"] == 6
    # docker-proxy, which carries every byte, is no small part of it on any machine
    largest = max(found.values(), key=lambda each: each["cost"]["cost"])
    assert largest["kind"] == "docker-proxy" and explained["unexplained"]["rounds"] == 6
    assert explained["interaction"] is not None and weighbridge("plan", study).code == 0


@pytest.mark.long
@pytest.mark.promise("a guest that ignores flushes is explained by its cache mode, as QEMU itself says it")
def test_a_guest_that_ignores_flushes(machine: Machine, tmp_path: Path):
    _, explained = explanation(machine, tmp_path, "why-fsync-ignored", "--blocks", "6")
    found = {each["kind"]: each for each in explained["mechanisms"]}
    assert found.keys() == {"disk-cache", "emulated-disk"}
    proof = found["disk-cache"]["proof"]
    assert (proof["state"], proof["with"], proof["without"]) == ("shown", "unsafe", "writeback")
    assert found["disk-cache"]["cost"]["cost"] < 0, "what syncs nothing is faster on any disk"


@pytest.fixture
def musl_userland(cache: Path) -> None:
    """Let studies find the programs that are built with musl; kept by the user."""
    spec, source = UserlandSpec.of(c=["allocations"]), PackagesOptions(libc="musl")
    kept = ensure(spec, Path.home() / ".cache/weighbridge", print, source)
    (cache / "userlands" / key_of(spec, source)).symlink_to(kept.root.parent)


@pytest.mark.long
@pytest.mark.usefixtures("musl_userland")
@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="no compiler for musl (musl-tools)")
@pytest.mark.promise("a program that is slower with another C library is explained by its userland")
def test_another_c_library(machine: Machine, tmp_path: Path):
    _, explained = explanation(machine, tmp_path, "why-libc", "--blocks", "6")
    found = {each["kind"]: each for each in explained["mechanisms"]}
    assert found.keys() - {"apparmor"} == {"userland", "seccomp", "memory-limit"}
    proof = found["userland"]["proof"]
    assert proof["state"] == "shown" and len(proof["with"]) == len(proof["without"]) == 64
    assert found["userland"]["cost"]["cost"] > 20, "musl's one lock costs two threads that much anywhere"


HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")
GUEST = "guest: {kind: qemu, accelerator: tcg, queues: 2, huge_pages: true}"


@pytest.fixture
def huge_pages() -> Iterator[int]:
    """Have 256 huge pages set aside, for two guests of 256 MiB on x86-64; gives how many."""
    before = HUGE_PAGES.read_text()
    HUGE_PAGES.write_text(f"{int(before) + 256}\n")
    try:
        if int(HUGE_PAGES.read_text()) < int(before) + 256:
            pytest.skip("this machine's memory is too scattered for huge pages")
        yield 256
    finally:
        HUGE_PAGES.write_text(before)


@pytest.mark.long
@pytest.mark.promise("each mechanism that explain switches off is off by what its sites say")
def test_a_guest_with_queues_and_huge_pages(machine: Machine, tmp_path: Path, huge_pages: int):
    study = write_study(
        tmp_path, environments=(NATIVE, GUEST), workloads=(LATENCY,), blocks=1,
        resources="{cpus: 2, memory: 256MiB}", further=("inside: [server]", "explain: true"),
    )  # fmt: skip
    _, explained = explanation(machine, tmp_path, study)
    proofs = {each["kind"]: each["proof"] for each in explained["mechanisms"]}
    for kind, with_it, without in (
        ("guest-queues", "2", "1"),
        ("guest-huge-pages", "huge: 256 MiB of them", "ordinary"),
    ):
        proof = proofs[kind]
        # ordinary pages, or those that the kernel has put together by itself
        assert (proof["state"], proof["with"]) == ("shown", with_it)
        assert proof["without"].replace("mostly transparent huge pages", "ordinary") == without


CHANGED = (
    "changed: {kind: docker, network: bridge, seccomp: unconfined, apparmor: unconfined, mtu: 1400,"
    " no_offloads: [tso], bridge_netfilter: true, conntrack: true, filter_rules: 50}"
)
ON_A_HOST = ("hosts: {a: {kind: testbed}}", "placement: {client: a, server: a}", "inside: [server, client]")
IN_FORCE = {
    "mtu": ("1348", "1448"),
    "offloads": ("gso, checksum", "tso, gso, checksum"),
    "bridge-netfilter": ("on", "off"),
    "connection-tracking": ("on", "off"),
    "filter-rules": ("50", "0"),
    "own-network": ("ipc mnt net pid uts", "ipc mnt pid uts"),
}


@pytest.mark.long
@pytest.mark.promise("each mechanism that explain switches off is off by what its sites say")
def test_what_is_changed_of_a_hosts_network_is_in_force(machine: Machine, tmp_path: Path):
    further = (*ON_A_HOST, "explain: true")
    study = write_study(tmp_path, environments=(NATIVE, CHANGED), blocks=1, further=further)
    _, explained = explanation(machine, tmp_path, study)
    proofs = {each["kind"]: each["proof"] for each in explained["mechanisms"]}
    assert {kind: (each["with"], each["without"]) for kind, each in proofs.items()} == IN_FORCE
    assert {each["state"] for each in proofs.values()} == {"shown"}
    rules = {each["kind"]: each["rules"] for each in explained["mechanisms"]}["filter-rules"]
    assert None in rules.values() or int(rules["with"]) >= int(rules["without"])
    moved = {each["kind"]: {one["metric"] for one in each["counters"]} for each in explained["mechanisms"]}
    assert "bytes_per_packet" in moved["offloads"]


@pytest.mark.long
@pytest.mark.promise("each mechanism that explain switches off is off by what its sites say")
def test_limits_and_variables_are_those_in_force(machine: Machine, tmp_path: Path):
    environments, explain = (NATIVE, LIMITED), ("explain: true",)
    study = write_study(tmp_path, environments=environments, workloads=(BUSY,), blocks=6, aa=True, further=explain)
    _, explained = explanation(machine, tmp_path, study)
    proofs = {each["kind"]: each["proof"] for each in explained["mechanisms"]}
    most = str(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    assert {kind: (proof["with"], proof["without"]) for kind, proof in proofs.items()} == {
        "seccomp": ("filter", "off"),
        "open-files": ("256", most),
        "variables": ("MALLOC_ARENA_MAX=1", "none"),
        "cpu-period": ("0.5 CPU, in each 200 ms", "0.5 CPU, in each 10 ms"),
        "cpu-limit": ("0.5 CPU, in each 10 ms", "1 CPU, in each 100 ms"),
    }
    assert {proof["state"] for proof in proofs.values()} == {"shown"}
    (limit,) = (each for each in explained["mechanisms"] if each["kind"] == "cpu-limit")
    assert {each["metric"] for each in limit["counters"]} == {"throttled_time", "throttled_periods"}
    (variables,) = (each for each in explained["mechanisms"] if each["kind"] == "variables")
    assert "page_faults" in {each["metric"] for each in variables["counters"]}


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
@pytest.mark.promise("a tracer watches what is explained in trials that are not counted")
def test_a_tracer_watches_once_more_and_no_trial_of_it_is_kept(machine: Machine, tmp_path: Path):
    filtered = "filtered: {kind: docker, network: none, apparmor: unconfined}"
    further = ("explain: true", "trace: perf", "rehearsal: true")
    study = write_study(tmp_path, environments=(NATIVE, filtered), workloads=(BUSY,), blocks=1, further=further)
    run, _ = explanation(machine, tmp_path, study)
    assert "perf records one extra run of each explained environment" in " ".join(
        weighbridge("plan", study).stdout.split()
    )
    assert len(trials(run)) == 3, "natively, filtered and without the filter"
    traces = json.loads((run / "traces" / "traces.json").read_text())["traces"]
    assert [each["arm"] for each in traces] == ["filtered", "filtered-without-seccomp"]
    for each in traces:
        if "performance events" in each["failure"] or "paranoid" in each["failure"]:
            pytest.skip(each["failure"])
        assert each["failure"] == "" and each["total"] >= sum(item["count"] for item in each["items"]) > 0, each
    assert "traced, not counted" in (run / "report.html").read_text()


@pytest.mark.long
@pytest.mark.promise("each mechanism that explain switches off is off by what its sites say")
def test_what_is_set_of_a_container_is_in_force(machine: Machine, tmp_path: Path):
    environments, explain = (NATIVE, *CONTAINERS), ("explain: [docker, podman]",)
    study = write_study(tmp_path, environments=environments, workloads=(SHORT,), blocks=1, further=explain)
    docker, podman = explanations(machine, tmp_path / "run", study)
    for proofs, first in ((docker, "docker-init"), (podman, "podman-init")):
        assert {each["state"] for each in proofs.values()} == {"shown"}
        profile = proofs.pop("apparmor", None)  # where this kernel has AppArmor
        assert profile is None or profile["without"] == "unconfined"
        capabilities, namespaces = proofs.pop("capabilities"), proofs.pop("cgroup-namespace")
        assert capabilities["with"] == "none" and {"sys_admin", "all"} & {*capabilities["without"].split()}
        assert "cgroup" in namespaces["with"] and "cgroup" not in namespaces["without"]
        before = {kind: each["with"] for kind, each in proofs.items()}
        assert before == {"no-new-privileges": "never", "pids-limit": "100", "shm-size": "8 MiB", "init": first}


@pytest.mark.long
@pytest.mark.promise("each mechanism that explain switches off is off by what its sites say")
def test_root_of_a_user_namespace_has_its_data(machine: Machine, tmp_path: Path):
    """Not in the mounts of own_machine.sh, where podman cannot make one: see ``OF_THIS_MACHINE``."""
    environments, explain = ("native: {kind: native, storage: directory}", IN_NAMESPACE), ("explain: [inside]",)
    study = write_study(tmp_path, environments=environments, workloads=(WRITES,), blocks=1, further=explain)
    (proofs,) = explanations(machine, tmp_path / "run", study)
    assert proofs.keys() == {"user-namespace"} and proofs["user-namespace"]["state"] == "shown"


def explanations(machine: Machine, run: Path, study: Path) -> list[dict[str, Any]]:
    """The proofs of each explained environment of a study, by kind, sorted by its name; each trial must be ok."""
    assert (done := weighbridge("run", study, "--out", run, "--yes")).code == 0, done
    machine.must_be_unchanged()
    assert {row["outcome"] for row in trials(run)} == {"ok"}
    explained = json.loads(weighbridge("report", run, "--json").stdout)["explanations"]
    by_name = sorted((str(each["environment"]), each["mechanisms"]) for each in explained)
    return [{row["kind"]: row["proof"] for row in rows if not row["why_not"]} for _, rows in by_name]


CLIENT_AND_SERVER = (
    "hosts: {here: {kind: local}, elsewhere: {kind: testbed}}", "placement: {client: here, server: elsewhere}",
    "inside: [client]", "explain: true",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.promise("each mechanism that explain switches off is off by what its sites say")
def test_the_network_of_a_client_whose_server_is_elsewhere(machine: Machine, tmp_path: Path):
    client = "client: {kind: docker, network: bridge, seccomp: unconfined, apparmor: unconfined}"
    study = write_study(
        tmp_path, environments=(NATIVE, client), workloads=(LATENCY,), blocks=1, further=CLIENT_AND_SERVER
    )
    _, explained = explanation(machine, tmp_path, study)
    proofs = {each["kind"]: each["proof"] for each in explained["mechanisms"]}
    assert proofs.keys() == {"own-network"} and proofs["own-network"]["state"] == "shown"
