"""The power of real guests, cut while they write: what was flushed is there, and what was not is not.

Each takes a minute or more on an emulated CPU. How records and commits are counted is tested in tests/runner.
"""

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.features.durability.runner import USERLAND, check_durability
from weighbridge.model.choices import Promise
from weighbridge.model.power_cut import DurabilityVerdict, PowerCut
from weighbridge.model.userland import Userland
from weighbridge.runner import clean
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.userland.build import ensure, key_of

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("nbdkit") is None, reason="needs nbdkit"),
    pytest.mark.promise("what was synced is there after a power cut, and what was only written is not counted on"),
]
RUN = "70e7c07a0b1d"
STUDY = """study: power-cut
question: What does a power cut leave?
hosts: {lab: {kind: guest, memory: 1GiB, accelerator: tcg, write_cache: %s}}
baseline: one
aa: false
environments: {one: %s}
workloads: {cpu: {kind: sysbench-cpu, duration: 1s}}
repetitions: {blocks: 1}
"""
NATIVE = "{kind: native, storage: directory}"


@pytest.fixture(autouse=True)
def _kept(cache: Path, small_userland: Userland, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What takes minutes to build as the user has kept it; afterwards nothing of the run is left."""
    kept = small_userland.root.parents[2]
    if not (link := cache / "userlands" / key_of(USERLAND)).exists():
        link.symlink_to(ensure(USERLAND, kept, print).root.parent)
    monkeypatch.setattr(secrets, "token_hex", lambda size: (2 * RUN)[: 2 * size])
    yield
    assert not [left for left in clean.find(RUN).left if left.run == RUN]


def cut(promise: Promise, environment: str = NATIVE, write_cache: str = "volatile") -> PowerCut:
    study = check(parse(STUDY % (write_cache, environment), "power-cut.yaml"))
    (found,) = check_durability(study, [promise], 3, print, print).checked
    print(found)
    assert found.found + found.lost == found.acknowledged > 10
    return found


def test_what_was_synced_natively_is_kept_and_what_was_only_written_is_not():
    assert cut(Promise.FSYNC).verdict is DurabilityVerdict.KEPT
    written = cut(Promise.WRITE)
    # the guest writes back what is dirty after 30 s, and nobody asked it to do so before
    assert (written.verdict, written.found, written.first_lost) == (DurabilityVerdict.LOST, 0, 0)


def test_a_disk_that_ignores_flushes_is_found_to_claim_more_than_it_keeps():
    found = cut(Promise.O_DSYNC, write_cache="unsafe")
    assert found.verdict is DurabilityVerdict.OVERCLAIMED and found.first_lost == 0


@pytest.mark.parametrize("promise", [Promise.FSYNC, Promise.O_DSYNC])
@pytest.mark.parametrize("storage", ["volume", "layer", "directory"])
def test_what_was_synced_in_a_container_is_kept(storage: str, promise: Promise):
    found = cut(promise, f"{{kind: docker, network: none, storage: {storage}}}")
    assert (found.verdict, found.storage) == (DurabilityVerdict.KEPT, storage)
