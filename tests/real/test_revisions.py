"""Two versions of a repository, checked out and built by real git, and nothing left of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge.errors import Interrupted, Unavailable, UserlandError
from weighbridge.model.names import RunId
from weighbridge.runner import clean, revisions
from weighbridge.runner.revisions import built_revisions
from weighbridge.runner.signals import interruptible

from .repositories import commit, git, repository

BUILD = ("sh", "-c", "cp version built")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("LC_ALL", "C")
    return tmp_path / "cache"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two versions, the current folder."""
    made = repository(tmp_path / "repo", {"version": "1", "sub/file": "a"}, {"version": "2"})
    monkeypatch.chdir(made)
    return made


def opened(base: str, head: str | None = None, build: tuple[str, ...] = (), **more):
    said: list[str] = []
    with built_revisions(base, head, build, said.append, **more) as found:
        trees = {each.name: each.folder for each in found.both}
        contents = {name: sorted(path.name for path in tree.iterdir()) for name, tree in trees.items()}
        files = {name: tree / "version" for name, tree in trees.items()}
        versions = {name: file.read_text() for name, file in files.items() if file.exists()}
    return found, trees, contents, versions, said


def worktrees(repo: Path) -> int:
    return len(git(repo, "worktree", "list").splitlines())


def test_each_version_is_built_in_a_folder_of_equally_long_a_name(repo, cache):
    found, trees, contents, versions, said = opened("HEAD^", build=BUILD)
    assert versions == {"base": "1", "head": "2"} and all("built" in each for each in contents.values())
    assert len({len(str(tree)) for tree in trees.values()}) == 1
    assert found.head.commit == git(repo, "rev-parse", "HEAD")
    assert all(cache in tree.parents and not tree.exists() for tree in trees.values())
    assert worktrees(repo) == 1 and git(repo, "status", "--porcelain") == "" and not found.uncommitted
    assert [*(cache / "revisions").iterdir()] == [] and len(said) == 2


def test_the_folder_is_private(repo, cache):
    with built_revisions("HEAD^", None, (), print) as found:
        assert (found.base.folder.parent.stat().st_mode & 0o777, found.base.folder.parent.parent) == (
            0o700, cache / "revisions",
        )  # fmt: skip


def test_programs_start_in_the_users_subfolder(repo, monkeypatch):
    monkeypatch.chdir(repo / "sub")
    assert opened("HEAD^")[2] == {"base": ["file"], "head": ["file"]}
    commit(repo, {"new/file": "b"})
    monkeypatch.chdir(repo / "new")
    with raises_sentence(Unavailable):
        opened("HEAD^", "HEAD~2")
    assert worktrees(repo) == 1


def test_uncommitted_changes_are_noticed_only_without_a_head(repo):
    (repo / "version").write_text("3")
    assert opened("HEAD^")[0].uncommitted and not opened("HEAD^", "HEAD")[0].uncommitted
    assert (repo / "version").read_text() == "3"


@pytest.mark.parametrize(
    "ref", ["nowhere", "--help", "-q", "--output=/x", "HEAD..HEAD", "", "main\0", "HEAD:version"]
)
def test_what_is_no_commit_is_one_sentence_and_never_an_option(repo, ref, cache):
    git(repo, "update-ref", "refs/remotes/origin/nowhere", "HEAD")
    with raises_sentence(Unavailable):
        opened(ref)
    assert not (cache / "revisions").exists()


def test_a_shallow_clone_without_the_base(repo, tmp_path, monkeypatch):
    first = git(repo, "rev-parse", "HEAD^")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repo}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    for ref in ("HEAD^", "other"):
        with raises_sentence(Unavailable):
            opened(ref)
    git(tmp_path / "shallow", "fetch", "--quiet", "--depth=1", "origin", first)
    assert opened(first)[3] == {"base": "1", "head": "2"}


def test_no_repository(tmp_path, monkeypatch, repo):
    for folder in (tmp_path, repo / ".git"):
        monkeypatch.chdir(folder)
        with pytest.raises(Unavailable, match="is not in the tree of one"):
            opened("HEAD")


def test_the_repository_of_another_user(repo):
    for path in (repo, repo / ".git"):
        os.chown(path, 4321, 4321)
    with raises_sentence(Unavailable):
        opened("HEAD^")


def test_a_variable_of_git_names_no_other_repository(repo, tmp_path, monkeypatch):
    other = repository(tmp_path / "other", {"version": "x"}, {"version": "y"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert opened("HEAD^")[3] == {"base": "1", "head": "2"}


def test_a_build_in_a_hook_of_git_uses_the_repository_of_its_tree(repo, tmp_path, monkeypatch):
    commits = git(repo, "log", "--format=%H").splitlines()
    for name, value in (("GIT_DIR", repo / ".git"), ("GIT_INDEX_FILE", repo / ".git/index"), ("GIT_WORK_TREE", repo)):
        monkeypatch.setenv(name, str(value))
    build = (
        f"git rev-parse HEAD >> {tmp_path}/seen; echo 3 > version; git add version; git checkout -q --orphan other"
    )
    opened("HEAD^", build=("sh", "-c", build))
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name)
    assert (tmp_path / "seen").read_text().splitlines() == commits[::-1]
    assert git(repo, "status", "--porcelain") == "" and git(repo, "rev-parse", "HEAD") == commits[0]


@pytest.mark.parametrize(
    "build", [("sh", "-c", "echo begin; echo it broke >&2; exit 3"), ("no-such-program",), ("sh", "-c", "kill -9 $$")]
)
def test_a_build_that_fails_is_one_sentence_and_leaves_nothing(repo, cache, build):
    with raises_sentence(UserlandError):
        opened("HEAD^", build=build, keep=True)
    assert worktrees(repo) == 1 and [*(cache / "revisions").iterdir()] == []


def test_no_shell_reads_the_build(repo):
    opened("HEAD^", build=("touch", "a; touch b", "$(touch c)"))
    assert opened("HEAD^", build=("touch", "$HOME"))[2]["head"] == ["$HOME", ".git", "sub", "version"]


def test_no_hook_of_the_repository_runs(repo, tmp_path):
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hook = repo / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/{name}\n")
        hook.chmod(0o755)
    git(repo, "config", "core.fsmonitor", f"touch {tmp_path}/fsmonitor; false")
    opened("HEAD^")
    hooks = {path.name for path in tmp_path.iterdir()} - {"repo", "cache"}
    assert hooks == set()


def test_a_link_out_of_a_version_is_refused(repo, monkeypatch):
    monkeypatch.chdir(repo / "sub")
    git(repo, "rm", "-q", "-r", "--cached", "sub")
    (repo / "sub").rename(repo / "real")
    (repo / "sub").symlink_to("../base/real")
    git(repo, "add", "sub")
    git(repo, "commit", "-q", "-m", "link")
    monkeypatch.chdir(repo)
    (repo / "sub").unlink()
    (repo / "real").rename(repo / "sub")
    monkeypatch.chdir(repo / "sub")
    with raises_sentence(Unavailable):
        opened("HEAD^")
    assert worktrees(repo) == 1


def test_no_process_of_a_build_outlives_it(repo, tmp_path):
    opened("HEAD^", build=("sh", "-c", f"setsid sleep 60 & echo $! >> {tmp_path}/pids"))
    for pid in (tmp_path / "pids").read_text().split():
        stat = Path(f"/proc/{pid}/stat")
        assert not stat.exists() or stat.read_text().split()[2] == "Z"


def test_ctrl_c_in_a_build_keeps_nothing_and_says_so(repo, cache):
    with interruptible(), pytest.raises(Interrupted, match="nothing was kept"):
        opened("HEAD^", build=("sh", "-c", f"kill -INT {os.getpid()}; sleep 60"))
    assert worktrees(repo) == 1 and [*(cache / "revisions").iterdir()] == []


def test_no_record_of_a_tree_that_the_build_removed_stays(repo):
    with built_revisions("HEAD^", None, ("sh", "-c", "rm -rf ../base"), print):
        pass
    assert worktrees(repo) == 1


def test_kept_trees_stay_until_clean_removes_them(repo, cache, monkeypatch):
    _, trees, *_ = opened("HEAD^", build=BUILD, keep=True)
    assert all((tree / "built").exists() for tree in trees.values())
    for alive, kinds in ((Path("/run"), []), (None, ["worktrees of two versions"])):
        monkeypatch.setattr(clean.living, "holder", lambda run, alive=alive: alive)
        monkeypatch.setattr(clean.run_lock, "known_runs", lambda: [RunId("0" * 12)])
        monkeypatch.setattr(clean.run_lock, "caches_of", lambda run: [cache])
        found = [*clean._OwnFolders().find(clean._folders())]
        assert [each.kind for each in found if str(cache) in each.name] == kinds, "a living run can be in them"
    clean._OwnFolders().remove_ownerless(clean._folders())
    assert worktrees(repo) == 1 and [*(cache / "revisions").iterdir()] == []


def test_a_killed_command_leaves_its_trees_for_clean(repo, cache):
    program = (
        "import os\nfrom weighbridge.runner.revisions import built_revisions\n"
        "with built_revisions('HEAD^', None, (), print): os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9 and worktrees(repo) == 3
    with revisions.left() as folders:
        (folder,) = folders
        revisions.remove(folder)
    assert worktrees(repo) == 1 and [*(cache / "revisions").iterdir()] == []


def test_what_is_in_use_is_not_left(repo):
    with built_revisions("HEAD^", None, (), print), revisions.left() as folders:
        assert folders == []


def test_a_full_disk_is_named_and_nothing_is_left(repo, cache, monkeypatch):
    def full(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left") as caught:
        opened("HEAD^")
    assert str(caught.value.filename).startswith(f"{cache}/") and [*(cache / "revisions").iterdir()] == []


def test_a_repository_that_is_gone_does_not_keep_its_trees(repo, cache, tmp_path):
    opened("HEAD^", keep=True)
    (repo / ".git").rename(tmp_path / "gone")
    with revisions.left() as (folder,):
        revisions.remove(folder)
    assert [*(cache / "revisions").iterdir()] == []


def test_a_file_that_cannot_be_removed_is_a_note(repo, monkeypatch):
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder.name))

    monkeypatch.setattr(revisions, "remove", refuse)
    note = opened("HEAD^")[-1][-1]
    assert_sentence(note.replace(note.split()[1], "FOLDER"))
