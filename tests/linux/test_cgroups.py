"""Control groups, on trees of files that look like the kernel's (which makes files where a folder is made)."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.linux import cgroups
from weighbridge.linux.cgroup_files import IDLE, bases, read_meters, version
from weighbridge.linux.cgroups import Cgroup, hierarchies, runs
from weighbridge.model.host import Limits
from weighbridge.model.names import GroupName, RunId

RUN = RunId("0123456789ab")
V1 = ("cpu", "cpuacct", "cpuset", "memory", "freezer", "pids", "devices", "systemd")
LIMITS = Limits(cpus=1.5, memory=2**30, cpuset="0-1")


class Tree:
    """A fake hierarchy: what is made below it gets the files that the kernel would make."""

    def __init__(self, mount: Path, number: int) -> None:
        self.mount, self.version = mount, number
        self.appears: dict[str, str] = {"cgroup.procs": ""}
        if number == 2:
            self.appears |= {"cgroup.controllers": "cpuset cpu io memory pids", "cgroup.subtree_control": "",
                             "cgroup.events": "populated 0\nfrozen 0\n", "cgroup.freeze": "0"}  # fmt: skip
            self.fill(mount)
            return
        for name in V1:
            (mount / name).mkdir(parents=True)
            self.fill(mount / name)
        (mount / "cpuset/cpuset.cpus").write_text("0-3\n")
        (mount / "cpuset/cpuset.mems").write_text("0\n")

    def fill(self, folder: Path) -> None:
        """The files of a new group."""
        folder.mkdir(exist_ok=True)
        for name, text in self.appears.items():
            (folder / name).write_text(text)
        if "cpuset" in folder.relative_to(self.mount).parts:
            for name in ("cpuset.cpus", "cpuset.mems"):
                (folder / name).write_text("\n")

    def group(self, name: str = "0123456789ab/site") -> Cgroup:
        run, *parts = name.split("/")
        return Cgroup(GroupName(RunId(run), *parts), mount=self.mount)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Tree]:
    """Makes a tree of a version; folders made in it are filled."""

    def make(number: int) -> Tree:
        made = Tree(tmp_path / "cgroup", number)
        usual = Path.mkdir

        def mkdir(path: Path, *arguments, **keywords) -> None:
            new = not path.exists()
            usual(path, *arguments, **keywords)
            if new and path.is_relative_to(made.mount):
                made.fill(path)

        monkeypatch.setattr(Path, "mkdir", mkdir)
        return made

    return make


def _failing(monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
    usual = cgroups._write

    def write(path: Path, value: str) -> None:
        if path.name == name:
            raise OSError(number, os.strerror(number), str(path))
        usual(path, value)

    monkeypatch.setattr(cgroups, "_write", write)


def test_versions_are_told_apart(tmp_path: Path, tree):
    assert version(tmp_path) == 0
    assert version(tmp_path / "nothing") == 0
    with raises_sentence(Unavailable):
        Cgroup(GroupName(RUN), mount=tmp_path)
    assert version(tree(2).mount) == 2


@pytest.mark.parametrize("number", [1, 2])
def test_a_group_is_made_everywhere_and_may_be_made_twice(tree, number: int):
    made = tree(number)
    group = made.group().create()
    made.group().create()
    assert all((procs.parent.is_dir(), procs.name) == (True, "cgroup.procs") for procs in group.procs)
    assert len(group.procs) == (6 if number == 1 else 1)
    assert runs(made.mount) == [RUN]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("made_by", [Cgroup.create, lambda group: group.everywhere])
def test_the_end_of_another_run_in_mid_make_is_waited_out(
    tree, monkeypatch: pytest.MonkeyPatch, number: int, made_by
):
    group, usual, removed = tree(number).group(), Path.mkdir, []

    def mkdir(path: Path, *arguments, **keywords) -> None:
        if path.name == RUN and not removed:
            removed.append(path)
            raise FileNotFoundError(2, "No such file or directory", str(path))
        usual(path, *arguments, **keywords)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    made_by(group)
    assert removed and all(path.is_dir() for path in group.paths.values())


def test_a_run_with_a_group_beside_is_found(tree):
    made = tree(1)
    group = Cgroup(GroupName(RUN), mount=made.mount, top=IDLE).create()
    assert runs(made.mount, IDLE) == [RUN] and runs(made.mount) == []
    assert all(path.parts[-2:] == (IDLE, RUN) for path in group.paths.values())


def test_a_cpuset_group_inherits_before_anything_joins(tree):
    made = tree(1)
    (made.group().create())
    for folder in ("weighbridge", "weighbridge/0123456789ab", "weighbridge/0123456789ab/site"):
        assert (made.mount / "cpuset" / folder / "cpuset.cpus").read_text() == "0-3"
        assert (made.mount / "cpuset" / folder / "cpuset.mems").read_text() == "0"


def test_a_cpuset_that_is_set_is_kept(tree):
    made = tree(1)
    group = made.group().create()
    assert group.limit(Limits(cpuset="1")) == {}
    made.group().create()
    assert (made.mount / "cpuset/weighbridge/0123456789ab/site/cpuset.cpus").read_text() == "1"


def test_version_2_delegates_controllers_down_to_the_parent_only(tree, monkeypatch: pytest.MonkeyPatch):
    written: list[tuple[str, str]] = []
    made = tree(2)
    (made.mount / "cgroup.subtree_control").write_text("cpu memory")
    monkeypatch.setattr(cgroups, "_write", lambda path, value: written.append((str(path.parent), value)))
    made.group().create()
    top = made.mount / "weighbridge"
    assert written == [(str(made.mount), "+cpuset"), (str(made.mount), "+pids")] + [
        (str(folder), f"+{name}") for folder in (top, top / RUN) for name in ("cpu", "cpuset", "memory", "pids")
    ]


def test_a_controller_that_cannot_be_delegated_is_no_reason_to_stop(tree, monkeypatch: pytest.MonkeyPatch):
    made = tree(2)
    _failing(monkeypatch, "cgroup.subtree_control", 16)
    made.group().create()


@pytest.mark.parametrize("number", [1, 13, 30, 28])
@pytest.mark.parametrize("number_of_version", [1, 2])
def test_where_no_group_can_be_made(tree, monkeypatch: pytest.MonkeyPatch, number: int, number_of_version: int):
    made = tree(number_of_version)

    def refuse(path: Path, *_, **__) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with raises_sentence(Unavailable):
        made.group().create()


def test_limits_of_version_1(tree):
    made = tree(1)
    assert made.group().create().limit(LIMITS) == {}
    read = {
        path.name: path.read_text()
        for path in made.mount.glob("*/weighbridge/0123456789ab/site/*")
        if path.name != "cgroup.procs"
    }
    assert read == {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000", "memory.limit_in_bytes": str(2**30),
                    "cpuset.cpus": "0-1", "cpuset.mems": "0", "cgroup.clone_children": "1"}  # fmt: skip


def test_limits_of_version_2(tree):
    made = tree(2)
    assert made.group().create().limit(LIMITS) == {}
    site = made.mount / "weighbridge/0123456789ab/site"
    assert (site / "cpu.max").read_text() == "150000 100000"
    assert (site / "memory.max").read_text() == str(2**30)
    assert (site / "cpuset.cpus").read_text() == "0-1"


@pytest.mark.parametrize("number", [1, 2])
def test_no_limits_write_nothing(tree, number: int):
    made = tree(number)
    group = made.group().create()
    before = sorted(made.mount.rglob("*"))
    assert group.limit(Limits()) == {}
    assert sorted(made.mount.rglob("*")) == before


@pytest.mark.parametrize(
    ("number", "file", "what"),
    [(1, "cpu.cfs_quota_us", "cpus"), (1, "cpu.cfs_period_us", "cpus"), (1, "memory.limit_in_bytes", "memory"),
     (1, "cpuset.cpus", "pin"), (2, "cpu.max", "cpus"), (2, "memory.max", "memory"), (2, "cpuset.cpus", "pin")],
)  # fmt: skip
def test_a_refused_limit_is_told_and_the_others_are_set(tree, monkeypatch: pytest.MonkeyPatch, number, file, what):
    made = tree(number)
    group = made.group().create()
    _failing(monkeypatch, file, 22)
    ((limit, why),) = group.limit(LIMITS).items()
    assert limit == what and why.startswith(f"Invalid argument ({file}=")


def test_a_controller_that_is_not_mounted_is_told(tree):
    made = tree(1)
    for name in ("memory", "cpuset"):
        (made.mount / name / "cgroup.procs").unlink()
        for file in (made.mount / name).iterdir():
            file.unlink()
        (made.mount / name).rmdir()
    refused = made.group().create().limit(LIMITS)
    assert list(refused) == ["memory", "pin"]


# -- freezing --------------------------------------------------------------------------------------


def test_version_1_is_asked_until_all_have_frozen(tree, monkeypatch: pytest.MonkeyPatch):
    group = tree(1).group().create()
    asked: list[str] = []

    def write(path: Path, value: str) -> None:
        asked.append(value)
        path.write_text("FREEZING" if len(asked) < 3 else value)

    monkeypatch.setattr(cgroups, "_write", write)
    group.freeze()
    assert asked == ["FROZEN"] * 3


@pytest.mark.parametrize("number", [1, 2])
def test_what_serves_files_is_limited_and_metered_but_not_frozen(tree, monkeypatch: pytest.MonkeyPatch, number: int):
    made = tree(number)
    group = made.group().create()
    base = made.mount / ("freezer" if number == 1 else "")
    site, name = base / "weighbridge/0123456789ab/site", "cgroup.procs"
    members = {made.mount / controller / "weighbridge/0123456789ab/site" for controller in bases(made.mount)}
    for folder in members:
        (folder / name).write_text("0\n11\n12\n13\n")
    monkeypatch.setattr(cgroups, "_serves_files", lambda pid: pid == 12)

    def write(path: Path, value: str) -> None:  # a kernel has a process in one group of a hierarchy
        path.write_text(path.read_text() + f"{value}\n" if path.name == name else value)
        if path.name == name:
            left = [line for line in (site / name).read_text().split() if line != value]
            (site / name).write_text("\n".join(left))

    monkeypatch.setattr(cgroups, "_write", write)
    group.exempt_file_servers()
    frozen, exempt = (site, site.parent) if number == 1 else (site / "freezable", site)
    assert {"11", "13"} <= {*(frozen / name).read_text().split()} and "12" in (exempt / name).read_text().split()
    assert group.pids() >= {11, 12, 13}
    assert Path(group.scope()[name]).read_text().split() == (["0", "11", "12", "13"] if number == 1 else ["11", "13"])
    if number == 2:
        (frozen / "cgroup.events").write_text("frozen 1\n")
    group.freeze()
    assert (frozen / ("freezer.state" if number == 1 else "cgroup.freeze")).read_text() in ("FROZEN", "1")


def test_a_group_in_which_nothing_serves_files_stays_as_it_is(tree):
    made = tree(2)
    group = made.group().create()
    group.exempt_file_servers()
    assert not (made.mount / "weighbridge/0123456789ab/site/freezable").exists()


def _kernel(site: Path, wanted: str) -> None:
    """Do a moment later what was asked for, as a kernel."""
    for _ in range(2000):
        if (site / "cgroup.freeze").read_text() == wanted:
            time.sleep(0.02)
            (site / "cgroup.events").write_text(f"populated 1\nfrozen {wanted}\n")
            return
        time.sleep(0.001)


def test_version_2_waits_until_the_kernel_has_frozen(tree):
    made = tree(2)
    group = made.group().create()
    site = made.mount / "weighbridge/0123456789ab/site"
    for act, wanted in ((group.freeze, "1"), (group.thaw, "0")):
        kernel = threading.Thread(target=_kernel, args=(site, wanted))
        kernel.start()
        act()
        assert f"frozen {wanted}" in (site / "cgroup.events").read_text()
        kernel.join()


def test_a_group_that_does_not_freeze_is_a_lost_environment(tree, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cgroups, "FREEZE_S", 0.02)
    with raises_sentence(EnvironmentLost):
        tree(2).group().create().freeze()


@pytest.mark.parametrize("number", [1, 2])
def test_a_group_that_has_gone_is_a_lost_environment(tree, number: int):
    group = tree(number).group()
    with raises_sentence(EnvironmentLost):
        group.freeze()
    with pytest.raises(EnvironmentLost):
        group.thaw()


# -- meters ----------------------------------------------------------------------------------------


def test_meters_of_version_2(tree):
    made = tree(2)
    group = made.group().create()
    site = made.mount / "weighbridge/0123456789ab/site"
    assert group.meters() == {}
    (site / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\nsystem_usec 2\n")
    assert group.meters() == {"cpu_s": 2.5, "throttled_s": 0.0}
    (site / "cpu.stat").write_text("usage_usec 2500000\nnr_throttled 1\nthrottled_usec 1500000\n")
    (site / "memory.current").write_text("4096\n")
    assert group.meters() == {"cpu_s": 2.5, "throttled_s": 1.5, "throttled_periods": 1.0, "memory_bytes": 4096.0}


@pytest.mark.parametrize("text", ["", "garbage", "usage_usec\n", "usage_usec x\n", "\n\n"])
@pytest.mark.parametrize("number", [1, 2])
def test_unreadable_meters_are_absent_never_zero(tmp_path: Path, number: int, text: str):
    for name in ("cpu.stat", "cpuacct.usage", "memory.current", "memory.usage_in_bytes"):
        (tmp_path / name).write_text(text)
    assert read_meters(number, lambda _: tmp_path) == {}
    assert read_meters(number, lambda _: tmp_path / "none") == {}


# -- what is in a group, and its end ---------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2])
def test_a_process_of_an_outer_namespace_is_never_signalled(tree, monkeypatch: pytest.MonkeyPatch, number: int):
    """The kernel lists it as 0, and to signal 0 would end our own process group."""
    made = tree(number)
    group = made.group().create()
    base = made.mount / ("freezer" if number == 1 else "")
    (base / "weighbridge/0123456789ab/site/cgroup.procs").write_text("0\n0\n")
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    clock = iter(range(0, 100, 3))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    assert group.pids() == set()
    group.kill()
    assert killed == []


@pytest.mark.parametrize("number", [1, 2])
def test_kill_thaws_and_ends_every_process(tree, monkeypatch: pytest.MonkeyPatch, number: int):
    made = tree(number)
    group = made.group().create()
    base = made.mount / ("freezer" if number == 1 else "")
    site = base / "weighbridge/0123456789ab/site"
    name, frozen, thawed = ("freezer.state", "FROZEN", "THAWED") if number == 1 else ("cgroup.freeze", "1", "0")
    (site / name).write_text(frozen)
    (site / "cgroup.procs").write_text("999999991\n999999992\n")
    killed: list[tuple[int, int]] = []

    def kill(pid: int, what: int) -> None:
        killed.append((pid, what))
        assert (site / name).read_text() == thawed, "a frozen process does not end"
        left = [line for line in (site / "cgroup.procs").read_text().split() if int(line) != pid]
        (site / "cgroup.procs").write_text("\n".join(left))
        if pid % 2:
            raise ProcessLookupError

    monkeypatch.setattr(os, "kill", kill)
    group.kill()
    assert sorted(killed) == [(999999991, signal.SIGKILL), (999999992, signal.SIGKILL)]
    assert group.pids() == set()


@pytest.mark.parametrize("number", [1, 2])
def test_remove_takes_everything_below_and_nothing_beside(tree, monkeypatch: pytest.MonkeyPatch, number: int):
    made = tree(number)
    group = made.group().create()
    made.group("0123456789ab/site/below").create()
    made.group("ba9876543210").create()
    usual = Path.rmdir

    def rmdir(path: Path) -> None:  # the kernel's files do not keep a group from being removed
        if not any(entry.is_dir() for entry in path.iterdir()):
            for entry in path.iterdir():
                entry.unlink()
        usual(path)

    monkeypatch.setattr(Path, "rmdir", rmdir)
    assert group.remove() is True
    assert not any(path.exists() for path in made.mount.rglob("site"))
    assert runs(made.mount) == [RUN, "ba9876543210"]
    assert group.remove() is True, "what has gone needs no removing"
    made.group(RUN).remove()
    cgroups.remove_top(made.mount)
    assert runs(made.mount) == ["ba9876543210"]
    made.group("ba9876543210").remove()
    cgroups.remove_top(made.mount)
    assert not any(made.mount.rglob("weighbridge"))


def test_controllers_that_a_run_or_its_engine_switched_on_are_switched_off(tree, monkeypatch: pytest.MonkeyPatch):
    made = tree(2)
    switches = made.mount / "cgroup.subtree_control"
    switches.write_text("cpuset cpu io memory pids")
    made.group(RUN).create()
    switches.write_text("cpuset cpu io memory hugetlb pids rdma misc")  # as runc does for a private engine
    written: list[str] = []
    monkeypatch.setattr(cgroups, "_write", lambda path, value: written.append(f"{path.name} {value}"))
    cgroups.remove_top(made.mount)
    assert not written, "nothing is switched off while a run has a group"
    top = made.mount / "weighbridge"
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)  # its runs have gone
    cgroups.remove_top(made.mount)
    assert not top.exists()
    assert written == [f"cgroup.subtree_control -{controller}" for controller in ("hugetlb", "rdma", "misc")]


def test_what_a_run_switched_on_above_its_groups_is_switched_off(tree, monkeypatch: pytest.MonkeyPatch):
    """cpuset, say, at the root of the hierarchy."""
    usual = cgroups._write

    def write(path: Path, value: str) -> None:
        """As the kernel takes it: ``+NAME`` and ``-NAME`` change the list."""
        if path.name != "cgroup.subtree_control":
            usual(path, value)
            return
        others = [name for name in path.read_text().split() if name != value[1:]]
        path.write_text(" ".join([*others, value[1:]] if value[0] == "+" else others))

    made = tree(2)
    switches = made.mount / "cgroup.subtree_control"
    switches.write_text("cpu memory")
    monkeypatch.setattr(cgroups, "_write", write)
    made.group(RUN).create()
    assert switches.read_text() == "cpu memory cpuset pids"
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)  # its runs have gone
    cgroups.remove_top(made.mount)
    assert switches.read_text() == "cpu memory"


def test_a_group_that_stays_is_told(tree, monkeypatch: pytest.MonkeyPatch):
    group = tree(2).group().create()
    clock = iter(range(0, 100, 3))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    assert group.remove() is False


def test_runs_where_there_are_none(tmp_path: Path, tree):
    assert runs(tmp_path) == []
    assert runs(tree(1).mount) == []


@pytest.mark.parametrize("number", [1, 2])
def test_a_group_behind_a_link_has_no_processes_of_ours(tree, monkeypatch, number: int):
    """Whatever could put a link there: processes of other groups are not ended."""
    made = tree(number)
    for base in hierarchies(made.mount):
        (base / "somebody").mkdir()
        (base / "somebody/cgroup.procs").write_text("4711\n")
        (base / "weighbridge").mkdir()
        (base / "weighbridge" / RUN).symlink_to(base / "somebody")
    ended = []
    monkeypatch.setattr(os, "kill", lambda pid, number: ended.append(pid))
    group = made.group(RUN)
    group.kill()
    assert (group.pids(), ended) == (set(), [])


@pytest.mark.parametrize("name", ["", "..", "../..", "/sys/fs", "run"])
def test_only_a_runs_group_can_be_named(tree, name: str):
    with pytest.raises(ValueError):
        tree(1).group(name)
