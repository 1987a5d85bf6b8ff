"""Git repositories with two versions of a program, made for a test."""

import os
import subprocess
from pathlib import Path

WHO = ("-c", "user.name=A Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")


WHEN = "2026-01-01T00:00:00Z"
"""Of every commit, so that a commit of the same files has the same name in each run."""


def git(folder: Path, *words: str) -> str:
    """Run git in a folder; return what it printed."""
    argv = ["git", "-C", str(folder), *WHO, *words]
    env = {**os.environ, "GIT_AUTHOR_DATE": WHEN, "GIT_COMMITTER_DATE": WHEN}
    return subprocess.run(argv, check=True, capture_output=True, text=True, env=env).stdout.strip()


def repository(folder: Path, *versions: dict[str, str]) -> Path:
    """Make a repository with a commit for each version, which maps paths to contents."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for files in versions:
        commit(folder, files)
    return folder


def commit(folder: Path, files: dict[str, str]) -> str:
    """Commit files; return the commit."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "a version")
    return git(folder, "rev-parse", "HEAD")
