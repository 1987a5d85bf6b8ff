"""What has no room where its storage is, is refused before a trial: by plan and run, and once sites are open."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.model.command import Command, Completed
from weighbridge.model.site import Mount, SiteStorage
from weighbridge.runner import room
from weighbridge.runner.room import DiskBudget, DiskWrites, lacking_room, written
from weighbridge.study.loader import check
from weighbridge.study.source import parse

GIB = 2**30
TEXT = """study: room
question: Does it fit?
hosts: {lab: {kind: HOST}}
baseline: disk
aa: false
environments:
  disk: {kind: native, storage: directory}
  memory: {kind: native, storage: {kind: tmpfs, size: 1GiB}}
  loop: {kind: native, storage: {kind: directory, disk: {filesystem: xfs, size: 3GiB}}}
workloads:
  files: {kind: sysbench-fileio, file_size: FILES, files: 4, fsync: [100, all], sites: SITES}
  one: {kind: dd, file_size: 128MiB}
repetitions: {blocks: 1}
"""


def made(host: str = "local", files: str = "512MiB", sites: str = "1"):
    text = TEXT.replace("HOST", host).replace("FILES", files).replace("SITES", sites)
    return check(parse(text, "room.yaml"))


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch):
    here = SimpleNamespace(free=100 * GIB, memory=16 * GIB)
    monkeypatch.setattr(room, "disk_usage", lambda _: here)
    monkeypatch.setattr(room, "_memory_here", lambda: here.memory)
    return here


def test_levels_share_their_files_and_sites_do_not():
    study = made()
    assert written(study, study.arms[0]).size == 640 * 2**20
    many = made(sites="[1, 10]")
    assert written(many, many.arms[0]).size == (10 * 512 + 128) * 2**20


def test_storage_of_a_size_of_its_own_is_refused_by_its_options(free):
    assert lacking_room(made()) == {}
    found = lacking_room(made(files="2GiB"))
    assert list(found) == ["memory"]
    assert_sentence(found["memory"])
    assert list(lacking_room(made(files="4GiB"))) == ["memory", "loop"]


def test_memory_is_no_larger_than_the_limit_of_the_sites(free):
    """Whatever the file system in it would hold."""
    text = TEXT.replace("HOST", "local").replace("FILES", "512MiB").replace("SITES", "1")
    found = lacking_room(check(parse(f"resources: {{memory: 256MiB}}\n{text}", "room.yaml")))
    assert list(found) == ["memory"]
    assert_sentence(found["memory"])
    assert lacking_room(check(parse(f"resources: {{memory: 1GiB}}\n{text}", "room.yaml"))) == {}
    several = text.replace("sites: 1", "sites: [1, 2]").replace(
        "{kind: dd, file_size: 128MiB}", "{kind: dd, file_size: 700MiB}"
    )
    found = lacking_room(
        check(parse(f"resources: {{memory: 1GiB}}\n{several.replace('size: 1GiB}', 'size: 4GiB}')}", "room.yaml"))
    )
    assert_sentence(found["memory"])  # whatever others have


def test_memory_is_no_larger_than_this_machine_s(free):
    free.memory = GIB // 2
    assert_sentence(lacking_room(made())["memory"])
    assert lacking_room(made(host="guest")) == {}, "a guest's is known once it runs"


def test_what_is_on_this_machine_s_disk_has_to_fit_there_together(free):
    free.free = GIB // 2
    (told,) = lacking_room(made()).values()
    assert_sentence(told)  # a loop disk is a file there
    assert lacking_room(made(host="guest")) == {}, "the disk of a guest is known once it runs"


@dataclass
class Disk:
    """A site on a disk with so much room."""

    free: str
    name: str = "0-one-server"
    title: str = "one"
    host: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(name="lab"))
    code: int = 0

    def run(self, command: Command) -> Completed:
        return Completed(command.argv, self.code, f"     Avail IFree Inodes\n{self.free}\n".encode(), b"", 0.0)


def storage(*servers: str, capacity: int | None = None) -> SiteStorage:
    mounts = [Mount("folder", "/there", servers=tuple(SimpleNamespace(name=each) for each in servers))]  # type: ignore[misc]
    return SiteStorage("directory", lambda _: None, mounts, capacity)  # type: ignore[arg-type,return-value]


def test_sites_on_one_disk_take_their_room_one_after_the_other():
    claims, site = DiskBudget(), Disk(f"{GIB} 900 1000")
    give_back = claims.claim(site, storage(), DiskWrites(600 * 2**20))  # type: ignore[arg-type]
    with raises_sentence(Unavailable):
        claims.claim(site, storage(), DiskWrites(600 * 2**20))  # type: ignore[arg-type]
    give_back()
    claims.claim(site, storage(), DiskWrites(600 * 2**20))  # type: ignore[arg-type]
    claims.claim(site, storage("server"), DiskWrites(600 * 2**20))  # type: ignore[arg-type]
    claims.claim(site, storage(capacity=GIB), DiskWrites(600 * 2**20))  # type: ignore[arg-type]


@pytest.mark.parametrize("site", [Disk("- - -"), Disk("", code=127), Disk("nan 1 1"), Disk("5")])
def test_a_disk_that_tells_nothing_is_no_reason(site: Disk):
    DiskBudget().claim(site, storage(), DiskWrites(GIB))  # type: ignore[arg-type]


def test_files_take_inodes_of_the_disk_unless_it_makes_them_as_they_are_wanted():
    claims, site = DiskBudget(), Disk(f"{GIB} 900 1000")
    claims.claim(site, storage(), DiskWrites(2**20, 600))  # type: ignore[arg-type]
    with raises_sentence(Unavailable):
        claims.claim(site, storage(), DiskWrites(2**20, 600))  # type: ignore[arg-type]
    DiskBudget().claim(Disk(f"{GIB} 0 0"), storage(), DiskWrites(2**20, 600))  # type: ignore[arg-type]


def test_the_files_of_all_workloads_and_sites_are_counted():
    text = TEXT.replace("HOST", "local").replace("FILES", "1MiB").replace("SITES", "1")
    more = text.replace(
        "  one:", "  many: {kind: metadata, operation: create, files: 300, jobs: 2, sites: 3}\n  one:"
    )
    study = check(parse(more, "room.yaml"))
    assert written(study, study.arms[0]).files == 300 * 2 * 3
