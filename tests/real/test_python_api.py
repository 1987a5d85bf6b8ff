"""`weighbridge.weigh` and the fixture of pytest measure real programs, by the same command as on a command line."""

import lzma
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import weighbridge

QUICK = ("--cpu-idle", "halt", "--quick-test")
PLUGIN = ("-p", "weighbridge.api.pytest_plugin")


@pytest.mark.measures
def test_a_command_is_measured_against_an_older_one(tmp_path: Path):
    run = weighbridge.weigh(
        ["sh", "-c", "sleep 0.06"], against=["sh", "-c", "sleep 0.02"], rounds=6, out=tmp_path / "run", options=QUICK
    )
    (cost,) = run.costs.where(primary=True, control=False)
    assert (cost.environment, cost.baseline, cost.rounds) == ("after", "before", 6)
    assert cost.cost is not None and cost.cost > 20
    assert len(run.pairs("after", "command", "time")) == 6
    assert {each.outcome for each in run.trials} == {"ok"} and len(run.samples) > 0


def test_what_the_command_refuses_is_an_exception(tmp_path: Path):
    with pytest.raises(weighbridge.WeighbridgeError, match="no such program") as error:
        weighbridge.weigh(["./nothing"], out=tmp_path / "run", options=QUICK)
    assert error.value.exit_code == 2
    assert not (tmp_path / "run").exists()


def test_ctrl_c_ends_the_measurement_cleanly(tmp_path: Path):
    out = tmp_path / "run"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process can ignore it

    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while not (out / "run.status.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            weighbridge.weigh(["sleep", "0.05"], against=["sleep", "0.05"], rounds=500, out=out, options=QUICK)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert not (out / "run.status.json").exists(), "the process ended before the exception, and removed its files"


TESTS = """
import time

def old():
    time.sleep(0.01)

def new():
    time.sleep(0.013)

def test_within(weigh):
    run = weigh(new, against=old, budget="80%", rounds=6, options=["--cpu-idle", "halt"])
    assert 10 < run.costs.where(primary=True, control=False)[0].cost < 60

def test_beyond(weigh):
    weigh(new, against=old, budget="5%", rounds=6, options=["--cpu-idle", "halt"])
"""


@pytest.mark.measures
def test_the_fixture_asserts_a_budget(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("XDG_DATA_HOME", str(pytester.path / "data"))
    pytester.makepyfile(test_speed=TESTS)
    result = pytester.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider", timeout=240)
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (1, 1), result.stdout.str()
    result.stdout.fnmatch_lines(["*test_speed.py::test_beyond*"])
    assert "Traceback" not in result.stdout.str()


def test_the_recipe_for_r_gives_the_cost(tmp_path: Path):
    """The recipe of docs/reference/run-file.md, word for word, on a kept run."""
    root = Path(__file__).parents[2]
    if not shutil.which("Rscript") or subprocess.run(["Rscript", "-e", "library(RSQLite)"], check=False).returncode:
        pytest.skip("needs R with RSQLite: Debian's r-cran-rsqlite")
    (recipe,) = re.findall(r"```r\n(.*?)```", (root / "docs/reference/run-file.md").read_text(), re.DOTALL)
    (tmp_path / "run.sqlite").write_bytes(lzma.decompress((root / "docs/runs/weigh.sqlite.xz").read_bytes()))
    done = subprocess.run(["Rscript", "-e", recipe], cwd=tmp_path, capture_output=True, text=True, check=True)
    (cost,) = weighbridge.load(tmp_path / "run.sqlite").costs.where(primary=True, control=False)
    assert float(done.stdout.split()[-1]) == pytest.approx(1 + (cost.cost or 0) / 100, rel=0.02)
