"""A site's storage is what was asked for: its own mount table says so, or it is refused."""

from typing import get_args

import pytest

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.model.host import Limits
from weighbridge.model.plugin import Durability
from weighbridge.model.site import Mount
from weighbridge.model.storage import weaker
from weighbridge.runner.storage import durability_of, require_in_force, storage_durability, storage_facts
from weighbridge.study.loader import check
from weighbridge.study.source import parse

TABLE = b"""22 1 254:0 / / ro,relatime - ext4 /dev/vda ro
31 22 0:44 / /srv rw,relatime master:3 - KIND tmpfs rw,size=1024k
"""


class Host:
    layers = ()


class Site:
    name, title, layers, host = "0-native-server", "native", (), Host()

    def __init__(self, table: bytes) -> None:
        self.table = table

    def read(self, path: str) -> bytes:
        assert path == "/proc/self/mountinfo"
        return self.table


def site(kind: str) -> Site:
    return Site(TABLE.replace(b"KIND", kind.encode()))


@pytest.mark.parametrize("table", [site("ext4"), Site(b""), Site(b"x y")])
def test_what_was_not(table: Site):
    with raises_sentence(Unavailable):
        require_in_force([Mount("folder", "/x", filesystem="tmpfs")], table)


def test_options_of_the_mount():
    """Those of the mount and those of its file system."""
    require_in_force([Mount("volume", "x", filesystem="nfs4", options=frozenset({"rw", "size=1024k"}))], site("nfs4"))
    with raises_sentence(Unavailable):
        require_in_force([Mount("volume", "x", filesystem="nfs4", options=frozenset({"rw", "hard"}))], site("nfs4"))


def test_a_guest_has_a_disk_of_its_own_in_it():
    guest = site("ext4")
    guest.layers = ("qemu",)
    require_in_force([Mount("folder", "/x", filesystem="tmpfs")], guest)


def test_facts():
    mount = Mount("folder", "/x", facts={"export": "sync"})
    assert storage_facts([mount], site("nfs4"), Limits(memory=2**28)) == {
        "storage: export": "sync",
        "storage: mounted": "nfs4 rw,relatime rw,size=1024k",
        "storage: file system": "nfs4",
    }


@pytest.mark.parametrize(("limits", "outside"), [(Limits(memory=2**28), True), (Limits(cpus=1), False)])
def test_a_server_s_page_cache_is_outside_of_a_limit_of_memory(limits: Limits, outside: bool):
    """With such a limit more of what is read comes from memory than without a server."""
    facts = storage_facts([Mount("volume", "x", cached_by="the server")], site("nfs4"), limits)
    assert [value for key, value in facts.items() if key.startswith("not honoured")] == (
        ["the server keeps files in memory without a limit"] if outside else []
    )


def test_a_layer_is_as_durable_as_the_runtime_makes_it():
    text = """
study: layers
question: Who keeps it?
baseline: layer
environments:
  layer: {kind: docker, network: none, storage: layer}
  gvisor-layer: {kind: docker, network: none, runtime: runsc, storage: layer}
  gvisor-volume: {kind: docker, network: none, runtime: runsc, storage: volume}
workloads:
  dd: {kind: dd, file_size: 1MiB, sync: each}
"""
    study = check(parse(text, "layers.yaml"))
    (cell,) = study.cells
    assert [durability_of(study, arm, cell) for arm in study.arms if not arm.aa_of] == [
        "synchronous",
        "none",
        "synchronous",
    ]
    assert [storage_durability(arm) for arm in study.arms if not arm.aa_of] == ["synchronous", "none", "synchronous"]


def test_what_somebody_else_decides_is_not_known_but_where_less_is():
    kept = {own: weaker(own, "unknown") for own in get_args(Durability)}
    assert kept == {"synchronous": "unknown", "unknown": "unknown", "asynchronous": "asynchronous", "none": "none"}
    claim = registry.storage()["claim"]
    assert claim.durability(claim.options()) == "unknown"
