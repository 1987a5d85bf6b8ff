"""Control groups of a user: which part of the tree is the user's, on trees of files that look like the kernel's."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.linux import cgroups, delegation
from weighbridge.linux.cgroups import Cgroup
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Limits
from weighbridge.model.names import GroupName, RunId

RUN = RunId("0123456789ab")
MANAGER = "user.slice/user-1000.slice/user@1000.service"
SESSION = "user.slice/user-1000.slice/session-3.scope"
OURS = str(os.getpid())


class Tree:
    """A unified hierarchy with a session's scope, and one user's part; ``moved`` is where systemd has put us."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mount, self.asked = folder / "cgroup", list[tuple[str, ...]]()
        self.proc = folder / "proc-cgroup"
        self.refusal = b""
        self._usual = Path.mkdir

        def mkdir(path: Path, *arguments, **keywords) -> None:
            self._mkdir(path, *arguments, **keywords)

        monkeypatch.setattr(Path, "mkdir", mkdir)
        monkeypatch.setattr(delegation, "_PROCESS", self.proc)
        monkeypatch.setattr(delegation, "_RUNTIME", folder / "run")
        monkeypatch.setattr(delegation.shutil, "which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(delegation.process, "run", self._run)
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        monkeypatch.setattr(os, "access", lambda path, _mode: self.may_write(Path(path)))
        self.writable = [self.mount / MANAGER]
        for name in ("", SESSION, MANAGER):
            (self.mount / name).mkdir(parents=True, exist_ok=True)
        (self.bus.parent).mkdir(parents=True)
        self.bus.touch()
        self.enter(SESSION)

    @property
    def bus(self) -> Path:
        return self.proc.parent / "run/1000/bus"

    def may_write(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self.writable)

    def enter(self, group: str, *others: str) -> None:
        """We are in this group, with other processes."""
        (self.mount / group).mkdir(parents=True, exist_ok=True)
        (self.mount / group / "cgroup.procs").write_text("\n".join((OURS, *others)))
        self.proc.write_text(f"0::/{group}\n")

    def _mkdir(self, path: Path, *arguments, **keywords) -> None:
        new = not path.exists()
        self._usual(path, *arguments, **keywords)
        if new and path.is_relative_to(self.mount):
            (path / "cgroup.procs").touch()
            (path / "cgroup.controllers").write_text("cpu memory pids")
            (path / "cgroup.subtree_control").touch()

    def _run(self, command: Command) -> Completed:
        self.asked.append(command.argv)
        if not self.refusal:
            self.enter(f"{MANAGER}/app.slice/{command.argv[command.argv.index('ssa(sv)a(sa(sv))') + 1]}")
        return Completed(command.argv, int(bool(self.refusal)), b"", self.refusal, 0.1)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    delegation._delegated_tree.cache_clear()
    yield Tree(tmp_path, monkeypatch)
    delegation._delegated_tree.cache_clear()


def test_a_user_in_a_session_gets_a_delegated_scope_once(tree: Tree):
    scope = delegation.tree(RUN, tree.mount)
    assert scope == tree.mount / MANAGER / f"app.slice/weighbridge-{RUN}-{OURS}.scope"
    assert delegation.tree(RUN, tree.mount) == scope
    (asked,) = tree.asked
    assert asked[:2] == ("busctl", f"--address=unix:path={tree.bus}")
    assert asked[asked.index("Delegate") :][:3] == ("Delegate", "b", "true")
    assert asked[asked.index("PIDs") :][:4] == ("PIDs", "au", "1", OURS)
    assert (scope / "weighbridge-itself/cgroup.procs").read_text() == OURS


def test_groups_in_it_are_made_and_limited_as_those_of_root(tree: Tree):
    scope = delegation.tree(RUN, tree.mount)
    group = Cgroup(GroupName(RUN, "native"), mount=scope).create()
    site = scope / f"weighbridge/{RUN}/native"
    assert group.limit(Limits(cpus=0.5, memory=2**28)) == {}
    assert (site / "cpu.max").read_text() == "50000 100000"
    assert (site / "memory.max").read_text() == str(2**28)
    assert group.procs == [site / "cgroup.procs"]
    assert (scope / "cgroup.subtree_control").read_text()


def test_a_controller_that_is_not_delegated_is_named(tree: Tree, monkeypatch: pytest.MonkeyPatch):
    def write(path: Path, value: str) -> None:
        raise PermissionError(13, os.strerror(13), str(path))

    monkeypatch.setattr(cgroups, "_write", write)
    group = Cgroup(GroupName(RUN, "native"), mount=delegation.tree(RUN, tree.mount)).create()
    assert group.limit(Limits(cpuset="0", memory=2**28)) == {
        "pin": "the controller cpuset is not delegated to this user",
        "memory": f"Permission denied (memory.max={2**28})",
    }


def test_the_controllers_are_those_of_the_users_systemd_or_of_the_scope_that_one_is_alone_in(tree: Tree):
    (tree.mount / MANAGER / "cgroup.controllers").write_text("cpu memory pids\n")
    assert delegation.controllers(tree.mount) == {"cpu", "memory", "pids"}
    tree.enter(f"{MANAGER}/app.slice/run-5.scope")
    (tree.mount / MANAGER / "app.slice/run-5.scope/cgroup.controllers").write_text("cpuset cpu memory pids\n")
    assert "cpuset" in delegation.controllers(tree.mount)


def test_whoever_is_alone_in_a_group_of_the_users_stays_there(tree: Tree):
    """As by ``systemd-run --user --scope -p CPUQuota=150% weighbridge``: another would be outside of that."""
    tree.enter(f"{MANAGER}/app.slice/run-5.scope")
    assert delegation.tree(RUN, tree.mount) == tree.mount / MANAGER / "app.slice/run-5.scope"
    tree.proc.write_text(f"0::/{MANAGER}/app.slice/run-5.scope/weighbridge-itself\n")
    (tree.mount / MANAGER / "app.slice/run-5.scope/cgroup.procs").write_text("")
    assert delegation.tree("ba9876543210", tree.mount) == tree.mount / MANAGER / "app.slice/run-5.scope"
    assert not tree.asked


def test_a_group_that_others_are_in_is_left_for_a_scope(tree: Tree):
    """As a shell in a terminal of a desktop: with it in there no controller can be given to groups below."""
    tree.enter(f"{MANAGER}/app.slice/terminal.scope", "4711")
    assert delegation.tree(RUN, tree.mount).name == f"weighbridge-{RUN}-{OURS}.scope"


@pytest.mark.parametrize("lacks", ["bus", "busctl", "version"])
def test_where_there_is_none_it_is_known_before_anything_is_asked(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, lacks: str
):
    if lacks == "bus":
        tree.bus.unlink()
    elif lacks == "busctl":
        monkeypatch.setattr(delegation.shutil, "which", lambda _: None)
    else:
        monkeypatch.setattr(delegation, "version", lambda _: 1)
    assert_sentence(delegation.lacking(tree.mount))
    with raises_sentence(Unavailable):
        delegation.tree(RUN, tree.mount)
    assert not tree.asked


def test_what_systemd_refuses_is_told(tree: Tree):
    tree.refusal = b"Call failed: Access denied\n"
    with raises_sentence(Unavailable):
        delegation.tree(RUN, tree.mount)


def test_groups_of_a_killed_run_are_found_in_its_scope_and_root_s_are_not_the_user_s(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
):
    Cgroup(GroupName(RUN, "native"), mount=delegation.tree(RUN, tree.mount)).create()
    (tree.mount / "weighbridge/ba9876543210").mkdir(parents=True)
    usual = Path.stat

    def stat(path: Path, **keywords):
        found = usual(path, **keywords)
        if path.is_relative_to(tree.mount):
            owner = 1000 if tree.may_write(path) else 0
            return os.stat_result((*found[:4], owner, *found[5:10]))
        return found

    monkeypatch.setattr(Path, "stat", stat)
    assert cgroups.runs(tree.mount) == [RUN]
    assert [group.paths[""].name for group in cgroups.groups_of(GroupName(RUN), tree.mount)] == [RUN, RUN]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert cgroups.runs(tree.mount) == ["ba9876543210"]
