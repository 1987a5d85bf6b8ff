"""Two versions of a git repository, each built in a worktree of its own, for ``weigh --base``.

The names of both folders have the same length, because the length of a path changes run times.
"""

import os
import re
import secrets
import shlex
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from weighbridge.errors import Interrupted, Unavailable, UserlandError
from weighbridge.linux import file_lock
from weighbridge.linux.deletion import OwnFolder, remove_tree
from weighbridge.linux.git import WITHOUT_PLACES
from weighbridge.linux.process import has_variable, run
from weighbridge.model.command import Command, Completed
from weighbridge.model.stored_study import BASE, HEAD
from weighbridge.model.text import one_line, printable
from weighbridge.runner.signals import shield
from weighbridge.userland.build import cache_folder

_FOLDER, _NOTE_FILE = "revisions", "repository"
_NAME = re.compile(r"[0-9a-f]{8}")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_GIT = (
    *WITHOUT_PLACES, "git", "--no-optional-locks",
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false",
)  # fmt: skip
"""git(1) without the repository's hooks."""
_GIT_ENV = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
_CHECKOUT_S, _BUILD_S = 3600.0, 24 * 3600.0
_SHOWN_LINES = 20
"""Lines of a failed build that the user sees."""
_SHOWN_COMMIT = 10
_BUILD_IN = "WEIGHBRIDGE_BUILD"
"""The variable of a build's processes that names the folder of both versions."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One version: its name in the study, its commit, and the folder in its tree where programs start."""

    name: str
    commit: str
    folder: Path

    @property
    def short_commit(self) -> str:
        """The first digits of the commit."""
        return self.commit[:_SHOWN_COMMIT]


@dataclass(frozen=True, slots=True)
class Revisions:
    """Both versions, built. ``uncommitted`` is whether the user's own tree has changes that the head has not."""

    base: Revision
    head: Revision
    uncommitted: bool = False

    @property
    def both(self) -> tuple[Revision, Revision]:
        """The base and the head."""
        return self.base, self.head


@dataclass(frozen=True, slots=True)
class _Repository:
    """A repository: the folder with all of its commits, and the user's place in its tree."""

    git_folder: Path
    subfolder: str


@contextmanager
def built_revisions(
    base: str, head: str | None, build: Sequence[str], say: Callable[[str], None], *, keep: bool = False
) -> Iterator[Revisions]:
    """Check out and build two versions of the repository in the current folder; remove both trees at the end.

    Without a ``head``, HEAD is checked out. With ``keep``, the trees stay for ``weighbridge clean``, unless a build
    failed. Raises Unavailable without git, a repository or a commit, and UserlandError if a build fails.
    """
    repository = _repository(Path.cwd())
    commits = {BASE: _commit(base), HEAD: _commit(head or "HEAD")}
    if commits[BASE] == commits[HEAD]:
        say(f"note: {BASE} and {HEAD} are the same commit")
    uncommitted = head is None and bool(_asked(("status", "--porcelain", "--untracked-files=no")).stdout.strip())
    with ExitStack() as stack:
        folder = _new_folder(stack)
        cleanup = stack.enter_context(ExitStack())
        cleanup.callback(_remove_at_end, folder, say)
        _note(folder, repository)
        try:
            before, after = (_checked_out(repository, folder, *each) for each in commits.items())
            for revision in (before, after) if build else ():
                say(f"building {revision.name} ({revision.short_commit}): {shlex.join(build)}")
                _build(revision, build, folder, say)
                _require_inside(revision.folder, folder / revision.name, revision.name)
        except Interrupted as ended:
            ended.nothing_kept = True
            raise
        if keep:
            cleanup.pop_all()
        yield Revisions(before, after, uncommitted)


def _repository(here: Path) -> _Repository:
    """Return the repository that a folder is in. Raises Unavailable if there is none that git reads."""
    if shutil.which("git") is None:
        raise Unavailable("--base needs git, which is not installed")
    questions = ("--path-format=absolute", "--show-toplevel", "--git-common-dir", "--show-prefix")
    answer = _asked(("rev-parse", *questions))
    if "dubious ownership" in answer.error_text:
        raise Unavailable(
            f"git does not read the repository at {here}, because it belongs to another user: run as that user, or "
            "add it to safe.directory (git-config(1))"
        )
    lines = answer.text.split("\n")
    if answer.returncode != 0 or len(lines) != 4:
        raise Unavailable(
            f"--base compares versions of a git repository, and {here} is not in the tree of one: cd to it"
        )
    return _Repository(Path(lines[1]), lines[2].rstrip("/"))


def _commit(ref: str) -> str:
    """Return the commit that a branch, tag or expression names; git can take no part of it for an option.

    Raises Unavailable if the repository has no such commit.
    """
    shown = one_line(ref, 100)
    if "\0" in ref or not (commit := _commit_or_none(ref)):
        if _asked(("rev-parse", "--is-shallow-repository")).text.strip() == "true":
            raise Unavailable(
                f"this shallow clone has no commit '{shown}': run git fetch --depth=1 origin {shlex.quote(shown)} "
                "(actions/checkout: fetch-depth: 0)"
            )
        remote = "\0" not in ref and _commit_or_none(f"origin/{ref}")
        hint = f". Did you mean origin/{shown}?" if remote else ": name a branch, a tag or a commit"
        raise Unavailable(f"the repository has no commit '{shown}'{hint}")
    return commit


def _commit_or_none(ref: str) -> str:
    """Return the commit of a ref; empty without one."""
    answer = _asked(("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"))
    commit = answer.text.strip()
    return commit if answer.returncode == 0 and _COMMIT.fullmatch(commit) else ""


def _asked(words: Sequence[str], deadline_s: float = 60.0) -> Completed:
    return run(Command((*_GIT, *words), deadline_s, _GIT_ENV))


def _new_folder(stack: ExitStack) -> Path:
    """Make a private folder. It is not `left` until the stack closes."""
    parent = cache_folder() / _FOLDER
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = parent / secrets.token_hex(4)
    file_lock.take(stack.enter_context(folder.with_suffix(".lock").open("w")))
    folder.mkdir(mode=0o700)
    return folder


def _note(folder: Path, repository: _Repository) -> None:
    """Write down the repository of the trees. Raises OSError that names the folder."""
    try:
        (folder / _NOTE_FILE).write_bytes(os.fsencode(repository.git_folder))
    except OSError as error:  # a full disk has no file name
        raise OSError(error.errno, error.strerror, str(folder)) from None


def _checked_out(repository: _Repository, folder: Path, name: str, commit: str) -> Revision:
    """Check out a commit into a new worktree. Raises Unavailable."""
    tree = folder / name
    done = _asked(("worktree", "add", "--quiet", "--detach", "--", str(tree), commit), _CHECKOUT_S)
    if done.returncode != 0:
        raise Unavailable(f"git cannot check out {name} ({commit[:_SHOWN_COMMIT]}): {printable(done.last_words)}")
    start = tree / repository.subfolder
    _require_inside(start, tree, name)
    if not start.is_dir():
        raise Unavailable(f"{name} ({commit[:_SHOWN_COMMIT]}) has no folder {repository.subfolder}: cd to one it has")
    return Revision(name, commit, start)


def _require_inside(start: Path, tree: Path, name: str) -> None:
    """Raise Unavailable if a link leads out of a version, for example into the other one."""
    if not start.resolve().is_relative_to(tree.resolve()):
        raise Unavailable(f"{name}: {start.relative_to(tree)} is a link that leads out of the repository")


def _build(revision: Revision, words: Sequence[str], folder: Path, say: Callable[[str], None]) -> None:
    """Build a version in its tree. Print the last lines of a failed build, and raise UserlandError.

    Its git uses the tree of the version. No process of the build outlives it, because it would disturb the
    measurement.
    """
    in_tree = (*WITHOUT_PLACES, f"--chdir={revision.folder}", "--", *words)
    try:
        done = run(Command(in_tree, _BUILD_S, {_BUILD_IN: str(folder)}))
    finally:
        _end_builds(folder)
    if done.returncode == 0 and not done.timed_out:
        return
    printed = (done.error_text if done.stderr.strip() else done.text).splitlines()
    for line in printed[-_SHOWN_LINES:-1]:
        say(line)
    how = f"was killed by signal {-done.returncode}" if done.returncode < 0 else f"exited with {done.returncode}"
    raise UserlandError(f"the build of {revision.name} ({revision.short_commit}) {how}: {printable(done.last_words)}")


def _end_builds(folder: Path) -> None:
    """Kill the processes that builds left. Their environment has the folder."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if has_variable(process, _BUILD_IN, str(folder)):
                os.kill(int(process.name), signal.SIGKILL)


# -- removal ---------------------------------------------------------------------------------------


@contextmanager
def left() -> Iterator[list[Path]]:
    """Yield the folders of killed or finished commands. None of them can be taken again until the context ends."""
    with ExitStack() as stack:
        folders = []
        for folder in sorted((cache_folder() / _FOLDER).glob("*")):
            if folder.is_dir() and _NAME.fullmatch(folder.name):
                lock = stack.enter_context(folder.with_suffix(".lock").open("a"))
                if file_lock.take(lock):
                    folders.append(folder)
        yield folders


def remove(folder: Path) -> None:
    """Remove the trees of a folder, and their records in the repository. Raises OSError if a file remains."""
    _end_builds(folder)
    git_folder = _noted(folder)
    for name in (BASE, HEAD) if git_folder is not None else ():
        where = (f"--git-dir={git_folder}", "worktree", "remove", "--force", "--force", "--", str(folder / name))
        _asked(where, _CHECKOUT_S)  # it also removes the record of a tree that is gone
    remove_tree(OwnFolder.at(folder))
    folder.with_suffix(".lock").unlink(missing_ok=True)


def _noted(folder: Path) -> Path | None:
    """Return the noted folder of the repository with its commits; None without git or a note."""
    note = folder / _NOTE_FILE
    if not note.is_file() or shutil.which("git") is None:
        return None
    path = Path(os.fsdecode(note.read_bytes()))
    return path if path.is_absolute() and path.is_dir() else None


def _remove_at_end(folder: Path, say: Callable[[str], None]) -> None:
    with shield():
        try:
            remove(folder)
        except OSError as error:  # for example a file of root that the build made in a container
            say(f"note: {error.filename} cannot be removed ({error.strerror}). Remove it as its owner")
