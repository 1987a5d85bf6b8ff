"""Debian's Prometheus and node exporter watch a run, and a study reads them back; they may go away in its middle."""

import json
import shutil
import socket
import sqlite3
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from weighbridge.model.flag import FlagCode

from .machine import Machine
from .weighing import going, trials, weighbridge, write_study

PROGRAMS = ("prometheus", "prometheus-node-exporter")
LACKING = [name for name in PROGRAMS if shutil.which(name) is None]
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"needs the Debian packages {', '.join(LACKING)}")
UP_S = 20.0
CPU = "cpu: {kind: sysbench-cpu, duration: 2s}"
QUERIES = {
    "load": ("node_load1", "1"),
    "busy": ("sum by (mode) (rate(node_cpu_seconds_total[3s]))", "s/s"),
    "running": ("weighbridge_trial_info", "1"),
}
CONFIGURATION = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: node
    static_configs: [{{targets: ["127.0.0.1:{node}"]}}]
  - job_name: weighbridge
    static_configs: [{{targets: ["127.0.0.1:{run}"]}}]
"""
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(url: str) -> bytes:
    """What is there. URLError where nothing is."""
    with _OPENER.open(url, timeout=5) as answer:
        return answer.read()


def free_ports(number: int) -> list[int]:
    """Ports of loopback that nothing listens on."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@dataclass(frozen=True)
class Watching:
    """A Prometheus that scrapes node exporter, and a port of the run that it scrapes too."""

    url: str
    run: str
    program: subprocess.Popen[bytes]

    def ask(self, query: str, start: float, end: float) -> list[dict[str, Any]]:
        """The series of a query at every second."""
        text = urllib.parse.urlencode(
            {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": "1", "lookback_delta": "2"}
        )
        return json.loads(get(f"{self.url}/api/v1/query_range?{text}"))["data"]["result"]

    def study(self, folder: Path, blocks: int = 3, **queries: tuple[str, str]) -> Path:
        """A study of a few trials that asks it."""
        path = write_study(folder, workloads=(CPU,), blocks=blocks)
        asked = {name: {"query": query, "unit": unit} for name, (query, unit) in (queries or QUERIES).items()}
        named = json.dumps({"url": self.url, "step": "1s", "queries": asked})
        path.write_text(f"{path.read_text()}prometheus: {named}\n")
        return path


@contextmanager
def watching(folder: Path) -> Iterator[Watching]:
    """Both programs, on loopback, with everything of theirs in the folder; gone at the end."""
    mine, node, run = free_ports(3)
    (folder / "prometheus.yml").write_text(CONFIGURATION.format(node=node, run=run))
    commands = (
        ("prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{node}", "--collector.disable-defaults",
         "--collector.cpu", "--collector.loadavg"),
        ("prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
         f"--web.listen-address=127.0.0.1:{mine}", "--log.level=warn"),
    )  # fmt: skip
    with (folder / "log").open("wb") as log:
        programs = [subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) for command in commands]
    try:
        made = Watching(f"http://127.0.0.1:{mine}", f"127.0.0.1:{run}", programs[1])
        _await_samples(made, programs, folder / "log")
        yield made
    finally:
        for program in programs:
            program.terminate()
        for program in programs:
            try:
                program.wait(10)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()


def _await_samples(made: Watching, programs: list[subprocess.Popen[bytes]], log: Path) -> None:
    deadline = time.monotonic() + UP_S
    while True:
        try:
            if made.ask(QUERIES["busy"][0], time.time() - 1, time.time()):  # a rate: it takes two scrapes
                return
        except (urllib.error.URLError, OSError):
            pass
        if time.monotonic() > deadline or any(program.poll() is not None for program in programs):
            pytest.fail(f"Prometheus is not up: {log.read_text()[-2000:]}")
        time.sleep(0.1)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watching]:
    with watching(tmp_path_factory.mktemp("prometheus")) as made:
        yield made


def saved(run: Path, query: str) -> list[tuple[Any, ...]]:
    """Rows of a run's database."""
    with closing(sqlite3.connect(f"file:{run / 'run.sqlite'}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def flags(run: Path) -> list[list[str]]:
    """What each trial was flagged with about Prometheus."""
    told = [json.loads(row["flags"]) for row in trials(run)]
    return [[flag["text"] for flag in each if flag["code"] == FlagCode.PROMETHEUS] for each in told]


def test_a_run_is_watched_and_a_study_reads_what_was_seen(machine: Machine, prometheus: Watching, tmp_path: Path):
    study, run = prometheus.study(tmp_path), tmp_path / "run"
    began = time.time()
    done = weighbridge("run", study, "--out", run, "--yes", "--metrics", prometheus.run)
    ended = time.time()
    assert done.code == 0, done
    assert f"http://{prometheus.run}/metrics" in done.stderr
    with pytest.raises(urllib.error.URLError):
        get(f"http://{prometheus.run}/metrics")
    machine.must_be_unchanged()

    # progress and measurements, as Prometheus has them
    values = {float(value) for _, value in _points(prometheus.ask("weighbridge_measurement", began, ended))}
    measured = [value for (value,) in saved(run, "SELECT value FROM measurement WHERE metric = 'events'")]
    assert set(measured[:2]) <= values, "those after which another trial ran for two seconds"
    assert {labels["metric"] for labels in _labels(prometheus.ask("weighbridge_measurement", began, ended))} >= {
        "events"
    }
    counts = [float(value) for _, value in _points(prometheus.ask("weighbridge_trials_done", began, ended))]
    assert counts == sorted(counts) and {0.0, 1.0, 2.0} <= set(counts)
    planned = {float(value) for _, value in _points(prometheus.ask("weighbridge_trials_planned", began, ended))}
    assert planned <= {0.0, 3.0} and 3.0 in planned
    ran = _labels(prometheus.ask("weighbridge_trial_info", began, ended))
    assert {(each["workload"], each.get("level", ""), each["environment"]) for each in ran} == {("cpu", "", "native")}
    assert {each["block"] for each in ran} == {"1", "2", "3"}
    (good,) = [
        each for each in prometheus.ask("weighbridge_trials_total > 0", began, ended) if "outcome" in each["metric"]
    ]
    assert good["metric"]["outcome"] == "ok"

    # what it had of each trial, as the run has it
    found = saved(run, "SELECT trial, name, at_s, vals FROM series WHERE place = 'prometheus'")
    names = {name for _, name, _, _ in found}
    assert {'busy{mode="user"} s/s', 'busy{mode="idle"} s/s'} < names
    assert any(name.startswith("load{") and name.endswith("} 1") for name in names)
    assert any(name.startswith("running{") and 'environment="native"' in name for name in names)
    assert flags(run) == [[], [], []] or all(
        flag.startswith("no samples of running") for each in flags(run) for flag in each
    ), "the run itself is scraped for the first time soon after it began"
    for row in trials(run):
        mine = {name: (at, values) for trial, name, at, values in found if trial == row["id"]}
        at, values = (json.loads(text) for text in mine['busy{mode="user"} s/s'])
        assert at[0] == 0 and len(at) == len(values) >= 3
        lasted = row["started_at"], row["started_at"] + row["duration_s"]
        (again,) = [
            each["values"] for each in prometheus.ask(QUERIES["busy"][0], *lasted) if each["metric"]["mode"] == "user"
        ]
        assert values == [pytest.approx(float(value), rel=1e-6) for _, value in again]


def _points(series: list[dict[str, Any]]) -> list[tuple[float, str]]:
    return sorted((float(at), value) for each in series for at, value in each["values"])


def _labels(series: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [each["metric"] for each in series]


def test_it_is_refused_before_anything_is_opened(machine: Machine, prometheus: Watching, tmp_path: Path):
    run = tmp_path / "run"
    wrong = prometheus.study(tmp_path, busy=("rate(node_load1", "1"))
    weighbridge("run", wrong, "--out", run, "--yes").must_fail(3, "rejected the query 'busy'", "parse error")
    good = prometheus.study(tmp_path)
    (port,) = free_ports(1)
    gone = good.read_text().replace(prometheus.url, f"http://127.0.0.1:{port}")
    (tmp_path / "gone.yaml").write_text(gone)
    refused = weighbridge("run", tmp_path / "gone.yaml", "--out", run, "--yes")
    refused.must_fail(4, f"Prometheus at http://127.0.0.1:{port}", "Connection refused")
    assert not run.exists()
    taken = prometheus.url.removeprefix("http://")
    weighbridge("run", good, "--out", run, "--yes", "--metrics", taken).must_fail(4, "the port is in use")
    assert not run.exists()
    machine.must_be_unchanged()


def test_a_server_that_stops_in_mid_run_costs_no_trial(machine: Machine, prometheus: Watching, tmp_path: Path):
    """The last test: Prometheus needs six seconds to begin, so there is one for all of them."""
    study, run = prometheus.study(tmp_path, 2, load=QUERIES["load"]), tmp_path / "run"
    with going("run", study, "--out", run, "--yes", files=tmp_path) as begun:
        begun.await_that(lambda: len(trials(run)) == 1, "a trial has ended")
        prometheus.program.terminate()
        assert prometheus.program.wait(10) == 0
        done = begun.end()
    assert done.code == 0, done
    assert [row["outcome"] for row in trials(run)] == ["ok"] * 2
    assert len(saved(run, "SELECT value FROM measurement WHERE metric = 'events'")) == 2
    gone = "no samples of load: the server does not answer (Connection refused)"
    assert flags(run) == [[], [gone]]
    assert gone in (run / "report.html").read_text()
    machine.must_be_unchanged()
