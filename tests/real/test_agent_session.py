"""An agent session in sandboxes of this machine, with its own programs."""

import json
import shutil
from pathlib import Path

import pytest

from weighbridge.model.command import SITE_ENV
from weighbridge.workloads.agent_session import FILES
from weighbridge.workloads.agent_session.session import PROGRAMS, STEPS

from .machine import Machine
from .weighing import NATIVE, trials, weighbridge, write_study

SESSION = "agent: {kind: agent-session, sessions: 1}"
MISSING = [program for program in PROGRAMS if shutil.which(program, path=SITE_ENV["PATH"]) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")


@pytest.mark.promise(
    "an agent session is the same work natively, in bubblewrap and in Docker, with this machine's programs"
)
def test_a_session_in_sandboxes(machine: Machine, tmp_path: Path):
    environments = (NATIVE, "bubblewrap: {kind: bubblewrap}", "docker: {kind: docker, network: none}")
    study = write_study(
        tmp_path, environments=environments, workloads=(SESSION,), blocks=2, resources="{}",
        further=("userland: host",),
    )  # fmt: skip
    run = tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    machine.must_be_unchanged()
    saved = trials(run)
    assert {(row["outcome"], row["message"]) for row in saved} == {("ok", "")}
    assert len(saved) == 2 * len(environments)
    for printed in run.glob("raw/*.solo.stdout"):
        *steps, end = map(json.loads, printed.read_text().splitlines())
        assert [line["step"] for line in steps] == [*STEPS]
        assert end["files"] == FILES and {*end["versions"]} == {*PROGRAMS}
    costs = json.loads(weighbridge("report", run, "--json").stdout)["costs"]
    assert {cost["metric"] for cost in costs} >= {"session", *STEPS}
