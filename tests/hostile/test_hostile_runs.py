"""No run directory and no fleet folder makes a command touch what is not its own, or end without a sentence.

pytest tests/hostile --hostile-seed 7               # another sample
pytest tests/hostile --hostile-case 'study:run.value[run_id]=absolute:run-continue' -s
"""

import collections
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from .commands import NO_RUN, is_tried, paths_of_commands

SCRIPT = Path(__file__).parent / "sandbox.sh"
SAMPLE, CAMPAIGN = 120, 10_000
_SHOWN = 40
_NO_NAMESPACES = re.compile(r"needs control groups of version 1|Operation not permitted|must be superuser")
Result = dict[str, Any]


def test_every_command_that_opens_a_run_is_tried():
    paths = {*paths_of_commands()}
    assert len(paths) > 20
    unknown = [each for each in paths if not is_tried(*each) and " ".join(each) not in NO_RUN]
    assert unknown == [], "say in commands.py how they open a run, or that they do not"
    assert NO_RUN.keys() <= {" ".join(each) for each in paths}


@pytest.mark.real
@pytest.mark.apart
def test_a_sample_of_hostile_runs(request: pytest.FixtureRequest):
    named = request.config.getoption("--hostile-case")
    seed = request.config.getoption("--hostile-seed")
    options = [f"--case={name}" for name in named] or ["--count", str(SAMPLE), "--seed", str(seed)]
    results = tried(options)
    if named:
        print(json.dumps(results, indent=2))
    must_be_sound(results, len(named) or SAMPLE)


@pytest.mark.real
@pytest.mark.long
@pytest.mark.promise("a run directory from a stranger can do no harm")
@pytest.mark.promise("whatever a run has in it, compare, history and gate use it or say in one sentence why not")
def test_the_campaign_of_hostile_runs(request: pytest.FixtureRequest):
    seed = request.config.getoption("--hostile-seed")
    must_be_sound(tried(["--count", str(CAMPAIGN), "--seed", str(seed)]), CAMPAIGN)


def tried(options: Sequence[str]) -> list[Result]:
    """Return what became of each case. Skips where namespaces cannot be had.

    After a command that has unmounted what the sandbox needs, the cases that are left are tried in another one.
    """
    results: list[Result] = []
    while True:
        argv = (SCRIPT, *options, "--skip", str(len(results)))
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        printed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if not (results or printed) and (refused := _NO_NAMESPACES.search(done.stderr)):
            pytest.skip(f"no namespaces of their own: {refused[0]}")
        new = [each for each in printed if "case" in each]
        results += new
        if any("ended" in each for each in printed):
            return results
        assert new, (done.returncode, done.stderr[-3000:], results[-1:])


def must_be_sound(results: Sequence[Result], count: int) -> None:
    """Every case was tried, and nothing is wrong with any."""
    faulty = [each for each in results if each["faults"]]
    kinds = collections.Counter(
        re.sub(r"[0-9a-f]{12}|\d+", "N", fault) for each in faulty for fault in each["faults"]
    )
    shown = [f"{each['case']}: {'; '.join(each['faults'])}\n    {each['stderr'][-300:]}" for each in faulty[:_SHOWN]]
    assert not faulty, "\n".join((f"{len(faulty)} of {len(results)}:", *map(str, kinds.most_common(20)), *shown))
    assert len(results) == count
