"""A git repository with two versions of a program, and the steps of the GitHub action on a pull request of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from features.pull_request.service import Service

from .repositories import repository

CI = Path(__file__).parents[2] / "ci"
WEIGHBRIDGE = f"{sys.executable} -m weighbridge"
SOURCE = "int main(void) {{ for (volatile long i = 0; i < {count}; i++); return 0; }}\n"
BUILD = "cc -O1 -o count count.c"
COUNT = 10_000_000
TESTED = {"WEIGHBRIDGE_ALLOW_CONCURRENT": "yes", "WEIGHBRIDGE_QUICK_TEST": "yes"}
"""Variables for a test, whose figures nobody reads."""


def versions(folder: Path, slower: float, count: int = COUNT) -> Path:
    """Make a repository whose last commit makes a program slower by a known share; it counts to ``count`` before."""
    counts = count, round(count * (1 + slower))
    files = ({"count.c": SOURCE.format(count=each), "notes": f"{number}"} for number, each in enumerate(counts))
    return repository(folder, *files)


def job(
    repo: Path, service: Service, *, within_s: float = 500, **variables: str
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run the steps of the action on pull request 7; return the end of the gate and the summary of the job.

    Upper-case variables are settings of ``ci/gate.sh`` without their ``WB_``, or complete names. Raises
    TimeoutExpired if the gate takes longer than ``within_s``, and AssertionError if the step "comment" fails.
    """
    folder = repo.parent
    (folder / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    summary = folder / "summary.md"
    env = {
        **{name: os.environ[name] for name in ("PATH", "PYTHONPATH", "DOCKER_HOST") if name in os.environ},
        "HOME": str(folder), "WEIGHBRIDGE_CACHE": str(folder / "cache"), "WEIGHBRIDGE": WEIGHBRIDGE,
        "GITHUB_ACTIONS": "true", "GITHUB_API_URL": service.address, "GITHUB_REPOSITORY": "o/r",
        "GITHUB_EVENT_PATH": str(folder / "event.json"), "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_SERVER_URL": "https://github.example", "GITHUB_RUN_ID": "5",
        "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_TOKEN": "ghs_token", "WB_RUN": "weighbridge-run",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        **{name if name.startswith("WEIGHBRIDGE_") else f"WB_{name}": value for name, value in variables.items()},
    }  # fmt: skip
    command = ["sh", str(CI / "gate.sh")]
    gate = subprocess.run(
        command, cwd=repo, env={**env, "WB_MARKDOWN": str(summary)}, capture_output=True, text=True, timeout=within_s,
        check=False,
    )  # fmt: skip
    posted = subprocess.run(
        command, cwd=repo, env={**env, "WB_STEP": "comment"}, capture_output=True, text=True, timeout=60, check=False
    )
    assert posted.returncode == 0, posted.stderr
    return gate, summary
