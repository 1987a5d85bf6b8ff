"""What monitoring/ starts and draws: a real Prometheus with exporters and a run, every query, Grafana's schema."""

import hashlib
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from downloads import npm_packages
from monitoring.reading import DASHBOARDS, MONITORING, filled, load, panels, queries
from report.made_up_runs import LOSS, TCP, Recipe, Workload, make_run
from weighbridge.analysis.analyse import analyse
from weighbridge.report.export.openmetrics import openmetrics
from weighbridge.store.run import DATABASE, RunStore

from .weighing import weighbridge, write_study

PROGRAMS = ("prometheus", "prometheus-node-exporter", "prometheus-process-exporter")
LACKING = [name for name in PROGRAMS if shutil.which(name) is None]
NEEDS_PROMETHEUS = pytest.mark.skipif(bool(LACKING), reason=f"needs the Debian packages {', '.join(LACKING)}")
NEEDS_NODE = pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None, reason="needs node and npm (nodejs, npm)"
)
SHIFT, OTHER_SHIFT = 20000, 21000
RUN = "127.0.0.1:29464"
KEPT_RUN = MONITORING.parent / "docs/runs/weigh.sqlite.xz"
UP_S = 20.0
CPU = "cpu: {kind: sysbench-cpu, duration: 3s}"
"""Long enough to be met by a scrape every second, on a busy machine too."""
NEEDS_A_KERNEL = {"CPU pressure": "cpu", "Memory pressure": "memory", "I/O pressure": "io"}
"""Panels that stay empty where the kernel counts no such pressure."""
NEEDS_MORE = {"Precision", "Blocks", "About to go", "Disk", "Network", "Throttled", "Pressure"}
"""Panels of the run that a run of two short trials without a limit need not fill."""


@dataclass(frozen=True)
class Watched:
    """A Prometheus that has watched a whole run: its address, and from when to when."""

    url: str
    began: float
    ended: float

    def ask(self, expr: str) -> list[dict[str, Any]]:
        """The series of a query over that time. Fails where Prometheus does not understand it."""
        window = {"start": self.began, "end": self.ended, "step": "1s"}
        text = urllib.parse.urlencode({"query": expr, **window})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"{self.url}/api/v1/query_range?{text}", timeout=10) as answer:
                told = json.load(answer)
        except urllib.error.HTTPError as error:
            pytest.fail(f"{expr}: {error.read().decode(errors='replace')}")
        assert told["status"] == "success" and not told.get("warnings"), (expr, told)
        return told["data"]["result"]


@contextmanager
def run_here(folder: Path, shift: int, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The program, once it says where Prometheus is, and what it said; ended where the test fails."""
    command = [
        sys.executable,
        str(MONITORING / "run_here.py"),
        "--shift",
        str(shift),
        "--cadvisor",
        "kept",
        *arguments,
    ]
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["WEIGHBRIDGE_CACHE"] = str(Path.home() / ".cache/weighbridge")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            told: list[str] = []
            for line in process.stdout:
                told.append(line.strip())
                if line.startswith("Prometheus: "):
                    break
            else:
                pytest.fail(f"it ended: {told}")
            yield process, told
        finally:
            if process.poll() is None:
                process.kill()


def _children(pid: int) -> set[int]:
    return {int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def _await_gone(pids: set[int]) -> None:
    deadline = time.monotonic() + 5
    while alive := {pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists() and _state(pid) != "Z"}:
        assert time.monotonic() < deadline, f"still there: {alive}"
        time.sleep(0.05)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def _results(folder: Path) -> Path:
    """A folder with the files of two finished runs: a kept one, and one with a cost that is a difference."""
    udp = Workload("udp", [(LOSS, 0.05, 2.0)])
    made = make_run(
        folder / "made", Recipe(costs={"bridge": 1.25, "host": 1.0}, workloads=[TCP, udp], study="made-up")
    )
    (folder / "kept").mkdir()
    (folder / "kept" / DATABASE).write_bytes(lzma.decompress(KEPT_RUN.read_bytes()))
    for name, store in (("made", made), ("kept", RunStore(folder / "kept"))):
        with store:
            (folder / f"{name}.prom").write_text(openmetrics(store, analyse(store)))
    return folder


@pytest.fixture(scope="module")
def network_card() -> Iterator[None]:
    """A card to draw: what only looks like a machine of its own (own_machine.sh) has none."""
    lacking = {each.name for each in Path("/sys/class/net").iterdir()} == {"lo"}
    if lacking:
        subprocess.run(["ip", "link", "add", "card", "type", "veth", "peer", "name", "card-peer"], check=True)
    yield
    if lacking:
        subprocess.run(["ip", "link", "delete", "card"], check=True)


@pytest.fixture(scope="module")
def watched(network_card: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Everything up, and a run of two trials watched; ended by Ctrl-C, leaving nothing."""
    folder, files = tmp_path_factory.mktemp("watching"), tmp_path_factory.mktemp("run")
    results = _results(tmp_path_factory.mktemp("results"))
    with run_here(folder, SHIFT, "--every", "1s", "--run", RUN, "--results", str(results)) as (process, told):
        url = told[-1].split()[1]
        began = time.time()
        study = write_study(files, workloads=(CPU,), blocks=2)
        done = weighbridge("run", study, "--out", files / "run", "--yes", "--metrics", RUN)
        assert done.code == 0, done
        time.sleep(max(0.0, began + 4 - time.time()))
        started = _children(process.pid)
        assert len(started) >= len(PROGRAMS)
        yield Watched(url, began, time.time())
        process.send_signal(signal.SIGINT)
        assert process.wait(UP_S) == 0
        _await_gone(started)
    assert list(folder.iterdir()) == []


@NEEDS_PROMETHEUS
def test_every_target_is_up(watched: Watched):
    up = {each["metric"]["job"] for each in watched.ask("up == 1")}
    configured = {each["metric"]["job"] for each in watched.ask("up")}
    assert up == configured
    assert up >= {"prometheus", "node", "process", "weighbridge"}


@NEEDS_PROMETHEUS
@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_draws(watched: Watched, path: Path):
    """Every query is understood; those that must have data here have some."""
    dashboard = load(path)
    for query in queries(dashboard):
        watched.ask(filled(query.expr, "4s"))
    if path.stem == "containers" and not watched.ask("container_last_seen"):
        pytest.skip(
            "cAdvisor has not been built here (monitoring/run_here.py builds it): only its queries were tried"
        )
    for panel in panels(dashboard):
        pressure = NEEDS_A_KERNEL.get(panel["title"])
        if pressure is not None and not Path("/proc/pressure", pressure).exists():
            continue
        if path.stem == "containers" and panel["title"] not in {"CPU", "Working set", "Anonymous memory"}:
            continue  # limits, networks and disks of containers that are not here
        if path.stem == "run" and panel["title"] in NEEDS_MORE:
            continue
        drawn = [bool(watched.ask(filled(target["expr"], "4s"))) for target in panel["targets"]]
        assert (all if path.stem == "costs" else any)(drawn), panel["title"]


@NEEDS_PROMETHEUS
def test_files_of_finished_runs_are_read(watched: Watched):
    """By the textfile collector, which refuses timestamps and types that it does not know."""
    assert {value for each in watched.ask("node_textfile_scrape_error") for _, value in each["values"]} == {"0"}
    assert {each["metric"]["study"] for each in watched.ask("weighbridge_result_info")} >= {"made-up"}
    shown = {each["metric"]["environment"]: float(each["values"][-1][1]) for each in watched.ask(
        'weighbridge_cost_ratio{study="made-up",workload="tcp"}'
    )}  # fmt: skip
    assert shown["bridge"] == pytest.approx(0.2, abs=0.03), "a throughput that is divided by 1.25"
    assert len(watched.ask("weighbridge_cost_difference")) == 2


@NEEDS_PROMETHEUS
def test_promtool_finds_no_fault(tmp_path: Path):
    for file in sorted(_results(tmp_path).glob("*.prom")):
        with file.open() as text:
            done = subprocess.run(
                ["promtool", "check", "metrics"], stdin=text, capture_output=True, text=True, check=False
            )
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


@NEEDS_PROMETHEUS
def test_each_trial_is_marked(watched: Watched):
    marks = [each["metric"] for each in watched.ask("weighbridge_trial_info")]
    assert {mark["workload"] for mark in marks} == {"cpu"}
    assert {mark["environment"] for mark in marks} == {"native"}


@NEEDS_PROMETHEUS
def test_nothing_goes_on_when_it_is_killed(tmp_path: Path):
    with run_here(tmp_path, OTHER_SHIFT) as (process, _):
        started = _children(process.pid)
        process.kill()
        _await_gone(started)


@NEEDS_PROMETHEUS
def test_a_port_that_is_taken_is_told(tmp_path: Path):
    with run_here(tmp_path, OTHER_SHIFT) as (process, _):
        command = [sys.executable, str(MONITORING / "run_here.py"), "--shift", str(OTHER_SHIFT), "--cadvisor", "none"]
        again = subprocess.run(command, capture_output=True, text=True, timeout=UP_S, check=False)
        assert (again.returncode, again.stderr.count("\n")) == (1, 1)
        assert str(9100 + OTHER_SHIFT) in again.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(UP_S) == 0
    assert list(tmp_path.iterdir()) == []


@NEEDS_NODE
@pytest.mark.long  # tests/monitoring checks what each panel has
@pytest.mark.promise("Grafana's own types accept the dashboards")
def test_the_dashboards_are_what_grafana_reads():
    """By Grafana's own types; its packages are downloaded once and kept."""
    check = MONITORING / "check"
    files = [
        path
        for path in sorted(check.iterdir())
        if path.suffix in {".json", ".ts", ".mjs"} and path.stem != "generated"
    ]
    key = hashlib.sha256((check / "package.json").read_bytes()).hexdigest()[:12]
    folder = Path.home() / ".cache/weighbridge/monitoring" / f"check-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copy(path, folder / path.name)
    packages = npm_packages(folder)
    _done(["node", "generate.mjs", str(MONITORING / "grafana/dashboards")], folder)
    _done([str(packages / ".bin/tsc"), "--project", "."], folder)


def _done(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
