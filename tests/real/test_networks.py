"""Every network between two hosts, in one run of one study: each takes the path that it claims to take."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from weighbridge.model.command import Command
from weighbridge.model.site import DATA, Site
from weighbridge.model.trial import TrialRecord
from weighbridge.model.userland import Userland
from weighbridge.runner.run import run_study
from weighbridge.runner.sites import Sites
from weighbridge.study.loader import load
from weighbridge.userland.build import cache_folder

from .between import CONTAINER, NATIVE, TCP, UDP, on_host, site_of, write
from .machine import Machine
from .weighing import facts, run_id, trials, weighbridge

BRIDGE = "kind: docker, network: bridge"
ENVIRONMENTS = (
    NATIVE,
    CONTAINER.replace("network: host", "network: host, seccomp: [default, unconfined]"),
    f"attached: {{{BRIDGE}, attach: interface}}",
    f"published: {{{BRIDGE}, publish: true, storage: [overlay, volume], userland_proxy: [true, false]}}",
    f"proxy: {{{BRIDGE}, publish: true, publish_by: proxy}}",
    "macvlan: {kind: docker, network: macvlan}",
    "overlay: {kind: docker, network: overlay}",
    "idle: {kind: native, engine: idle}",
)
NAMES = [
    "attached", "box[seccomp=default]", "box[seccomp=unconfined]", "idle", "macvlan", "native", "overlay", "proxy",
    *(f"published[storage={storage},userland_proxy={proxy}]"
      for storage in ("overlay", "volume") for proxy in ("false", "true")),
]  # fmt: skip
PUBLISHED = "published[storage=overlay,userland_proxy=true]"


Run = tuple[Path, dict[str, dict[str, Any]]]
"""The run's directory, and what was seen of each environment."""


@dataclass
class Watching:
    """Progress that looks at each environment as its trial has ended, while its sites are still open."""

    sites: list[Sites] = field(default_factory=list)
    run: str = ""
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)

    def trial_finished(self, record: TrialRecord) -> None:
        name = record.trial.environment
        if name in self.seen:
            return
        opened = self.sites[0]
        site: Any = site_of(opened, name, "server")
        look = look_at_container if hasattr(site, "pid") and hasattr(site, "_container") else look_at_native
        self.seen[name] = {"client": site_of(opened, name, "client").address, "server": site.address, **look(site)}
        self.seen[name]["idle engine"] = "dockerd" in on_host(opened.run.id, "a-engine")

    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: None


def look_at_native(site: Site) -> dict[str, Any]:
    return {}


def look_at_container(site: Any) -> dict[str, Any]:
    host = site.host

    def told(*argv: str) -> str:
        return str(host.run(Command(argv, 20)).text)

    def inside(*argv: str) -> str:
        done = site.run(Command(argv, 20))
        assert done.returncode == 0, done
        return str(done.text.strip())

    return {
        "host": host.name,
        "seccomp": inside("grep", "-w", "Seccomp:", "/proc/self/status").split()[-1],
        "data": site.run(Command(("stat", "-f", "-c", "%T", DATA))).text.strip(),
        "root": site.run(Command(("sh", "-c", "echo x > /x && rm /x"))).returncode == 0,
        "link": told("nsenter", "--target", str(site.pid), "--net", "ip", "-d", "link", "show"),
        "nat": told("iptables", "-t", "nat", "-vnxL"),
        "proxies": told("pgrep", "docker-proxy").split(),
    }


@pytest.fixture(scope="module")
def run(
    userland: Userland, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, dict[str, dict[str, Any]]]]:
    folder = tmp_path_factory.mktemp("networks")
    before, watching = Machine.as_it_is(), Watching()
    with pytest.MonkeyPatch.context() as patch:
        open_all = Sites.open_all
        patch.setattr(Sites, "open_all", lambda self, stack: (watching.sites.append(self), open_all(self, stack)))
        study = load(str(write(folder, environments=ENVIRONMENTS, workloads=(TCP, UDP))))
        run_study(study, folder / "run", watching, lambda _: None)
        assert not (cache_folder() / "engines").exists()
    before.must_be_unchanged()
    yield folder / "run", watching.seen


def test_everything_was_measured_and_nothing_is_left(run: Run):
    rows = trials(run[0])
    failed = [row["message"] for row in rows if row["outcome"] != "ok"]
    # where others take the CPUs meanwhile a datagram is lost, and its block is run again
    assert all("waited for a lost message" in message for message in failed), failed
    assert sorted({row["environment"] for row in rows if row["outcome"] == "ok"}) == NAMES
    assert run_id(run[0]) not in weighbridge("clean", "--check").stdout


def test_the_largest_datagram_is_that_of_each_path(run: Run):
    sizes = {key: value for (scope, key), value in facts(run[0]).items() if scope == "packet sizes"}
    for name in NAMES:
        payload = 1422 if name == "overlay" else 65507 if name == "proxy" else 1472
        found = sizes[f"{name}/udp"]
        assert name == "proxy" or found.startswith(f"{payload} B"), (name, found)


def test_addresses(run: Run):
    seen = run[1]
    for name in ("native", "box[seccomp=default]", "attached", "macvlan", PUBLISHED, "proxy"):
        assert seen[name]["server"].startswith("198.19.200."), name
    assert seen["box[seccomp=default]"]["server"] != seen["native"]["server"], "native has its hosts to itself"
    assert len({seen[name]["server"] for name in ("native", "attached", "macvlan", "proxy")}) == 4
    assert not seen["overlay"]["server"].startswith("198.19.")
    same = seen["overlay"]["server"].rsplit(".", 1)[0]
    assert seen["overlay"]["client"].startswith(same), "one subnet across both hosts"


def test_links_are_of_the_kind_that_they_are_called(run: Run):
    seen = run[1]
    assert "macvlan mode bridge" in seen["macvlan"]["link"]
    for name in ("attached", PUBLISHED, "overlay"):
        assert "veth" in seen[name]["link"], name
    assert "mtu 1450" in seen["overlay"]["link"]
    assert "wb-" in seen["box[seccomp=default]"]["link"] or "veth" in seen["box[seccomp=default]"]["link"]


def packets(nat: str, port_rules: str = "DNAT") -> int:
    """The packets that rules of this kind have met."""
    return sum(int(line.split()[0]) for line in nat.splitlines() if re.search(rf"\b{port_rules}\b", line))


def test_published_ports_take_their_path(run: Run):
    """By address translation its rules are met; without such rules only docker-proxy can take it."""
    seen = run[1]
    for name in NAMES:
        if name.startswith("published"):
            assert packets(seen[name]["nat"]) > 0, name
            assert bool(seen[name]["proxies"]) is name.endswith("userland_proxy=true]"), name
    assert "DNAT" not in seen["proxy"]["nat"] and seen["proxy"]["proxies"]


def test_seccomp_and_storage_are_what_was_asked_for(run: Run):
    seen = run[1]
    assert seen["box[seccomp=default]"]["seccomp"] == "2"
    assert seen["box[seccomp=unconfined]"]["seccomp"] == "0"
    for storage in ("overlay", "volume"):
        found = seen[f"published[storage={storage},userland_proxy=true]"]
        assert (found["data"] == "overlayfs") is (storage == "overlay"), found["data"]
        assert found["root"] is (storage == "overlay"), "only a layer of its own can be written to"


def test_hosts_that_are_changed_are_used_for_nothing_else(run: Run):
    seen = run[1]
    hosts = {name: seen[name].get("host") for name in NAMES}
    assert hosts["box[seccomp=default]"] == "b-docker" and hosts["overlay"] == "b-swarm"
    assert hosts[PUBLISHED] == "b-nat", "what one environment changes is not on the host of another"
    assert hosts["attached"] == "b-bridged" and hosts["macvlan"] == "b-macvlan" and hosts["proxy"] == "b-nat-nonat"
    assert hosts["published[storage=volume,userland_proxy=false]"] == "b-nat-noproxy"


def test_an_idle_engine_runs_while_its_environment_is_measured_and_at_no_other_time(run: Run):
    assert {name: found["idle engine"] for name, found in run[1].items()} == {name: name == "idle" for name in NAMES}
