"""Downloads of tests: if a registry does not answer, the test is skipped; any other failure fails it."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

DEADLINE_S = 600.0
_NO_ANSWER = re.compile(
    r"code (E429|E5\d\d|EAI_AGAIN|ENOTFOUND|ETIMEDOUT|EIDLETIMEOUT|ERR_SOCKET_TIMEOUT|E(CONN|HOST|NET)[A-Z]+)\b"
    r"|connection broken by|Max retries exceeded|Read timed out|Temporary failure in name resolution"
    r"|HTTP error (429|5\d\d)|error sending request for url",
)
"""Words of npm, pip and uv about a registry that cannot be reached, is busy or fails."""


def no_answer(output: str) -> str:
    """Return the line in which npm or pip says that its registry did not answer; empty if there is none."""
    return next((line.strip() for line in output.splitlines() if _NO_ANSWER.search(line)), "")


def download(command: Sequence[object], folder: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run a command that downloads, in ``folder``. Skips the test if the registry does not answer."""
    argv = [str(word) for word in command]
    try:
        done = subprocess.run(
            argv, cwd=folder, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{argv[0]} downloaded for more than {DEADLINE_S:g} s")
    output = done.stdout + done.stderr
    if done.returncode != 0 and (line := no_answer(output)):
        pytest.skip(f"a registry does not answer: {line}")
    assert done.returncode == 0, output


def npm_packages(folder: Path, *names: str) -> Path:
    """Install packages in ``folder`` once; without names, those of its package.json. Return their folder."""
    packages, complete = folder / "node_modules", folder / "complete"
    if not complete.exists():
        folder.mkdir(parents=True, exist_ok=True)
        download(
            ("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", *names), folder
        )
        complete.touch()
    return packages
