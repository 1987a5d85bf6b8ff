"""Measure two pull requests as the GitHub action does, and show their comments in docs/howto/ci.md:

    .venv/bin/python docs/pull_requests.py

The pull requests belong to a new git repository with a C program that counts. In the first one, the program counts 5%
further. In the second one, only a text changes. ``ci/gate.sh`` builds, measures and judges both, and posts the
comments to a server in this process. The finished runs become docs/runs/pull-request-*.sqlite.xz, and the page shows
their comments. The comments and the reports are also written to build/pull-requests/. Nothing else should run
meanwhile: up to seven minutes.

It needs git and cc. Exits with 1 if the documentation shows other comments than the posted ones, or if the gate gave
the wrong answer.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import generated
from keep_run import keep
from kept_runs import PULL_REQUEST_BUDGET, PULL_REQUESTS, comment_text, run_directory, write_page

from features.pull_request.service import Service, served
from real.pull_requests import BUILD, job, versions

ROOT = Path(__file__).parents[1]
COUNT = 100_000_000
"""The steps of the program before the change: some tenths of a second."""
SLOWER = dict(zip(PULL_REQUESTS, (0.05, 0.0), strict=True))
CODES = dict(zip(PULL_REQUESTS, (11, 0), strict=True))
"""The exit codes of the gate: the cost of 5% exceeds the budget of 3%, and the cost of 0% does not."""
PAGE, PAGES = ROOT / "docs/howto/ci.md", ROOT / "build/pull-requests"


def measured(name: str, within: str, folder: Path, **variables: str) -> tuple[str, int]:
    """Measure a pull request and keep its run. Return the posted comment and the exit code of the gate."""
    with tempfile.TemporaryDirectory(prefix="weighbridge-docs-") as place, served(Service()) as service:
        repository = versions(Path(place) / "repo", SLOWER[name], COUNT)
        gate, _ = job(
            repository, service, within_s=3600, BASE="HEAD^", BUILD=BUILD, COMMAND="./count", WITHIN=within,
            BUDGETS=PULL_REQUEST_BUDGET, **variables,
        )  # fmt: skip
        if not service.comments:
            sys.exit(f"{name}: nothing was posted:\n{gate.stdout}{gate.stderr}")
        keep(repository / "weighbridge-run", name, folder)
        return service.comments[0]["body"], gate.returncode


def without_link(text: str) -> str:
    """Return a comment without the link to the page of the CI job."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("[Report]("))


def main() -> int:
    """Measure both pull requests, and compare the posted comments with the ones that the documentation shows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--within", default="3min", help="time for the rounds of a pull request")
    parser.add_argument("--allow-concurrent", action="store_true", help="measure while other runs are active")
    given, ends = parser.parse_args(), 0
    variables = {"WEIGHBRIDGE_ALLOW_CONCURRENT": "yes"} if given.allow_concurrent else {}
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in PULL_REQUESTS:
        posted, code = measured(name, given.within, ROOT / "docs/runs", **variables)
        (PAGES / f"{name}.md").write_text(posted)
        with run_directory(name) as run:
            write_page(run, PAGES / f"{name}.html")
        words = len(re.findall(r"[^\s|]+", posted))
        print(f"{name}: the gate ended with {code}, {words} words: {posted.splitlines()[0]}")
        if without_link(posted).split() != comment_text(name).split():
            print(f"{name}: the documentation shows another comment than {PAGES / name}.md", file=sys.stderr)
            ends = 1
        if code != CODES[name]:
            print(f"{name}: expected the exit code {CODES[name]}: measure again at a quieter time", file=sys.stderr)
            ends = 1
    PAGE.write_text(generated.filled(PAGE.read_text()))
    return ends


if __name__ == "__main__":
    sys.exit(main())
