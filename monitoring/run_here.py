#!/usr/bin/env python3
"""Run Prometheus and the exporters from Debian's packages on loopback until Ctrl-C, and remove everything afterwards.

The script needs only Python and the packages prometheus, prometheus-node-exporter and prometheus-process-exporter.
It builds cAdvisor if Go is installed, and leaves it out otherwise.
"""

import argparse
import hashlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent
COLLECTORS = (
    "cpu", "diskstats", "filefd", "loadavg", "meminfo", "netdev", "netstat", "pressure", "sockstat", "stat",
    "textfile", "vmstat",
)  # fmt: skip
"""The collectors of the node exporter that the dashboards use, as in compose.yaml."""
PORTS = {"prometheus": 9090, "node": 9100, "process": 9256, "cadvisor": 9101}
MOST_SHIFT = 65535 - max(PORTS.values())
PACKAGES = ("prometheus", "prometheus-node-exporter", "prometheus-process-exporter")
"""The packages of Debian, each with a program of the same name."""
RESULTS = HERE / "results"
"""The folder of the node exporter for files of finished runs."""
RUN = "127.0.0.1:9464"
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
READY_S = 15.0
END_S = 5.0


class Failed(Exception):
    """An error that ends the program; its text is one sentence for the user."""


@dataclass(frozen=True)
class Program:
    """One program: its job in prometheus.yml, its command and its port."""

    job: str
    arguments: Sequence[str]
    port: int


def configured(template: str, shift: int, every: str, run: str, jobs: set[str]) -> str:
    """Return the text of prometheus.yml with other ports and another interval, and only these jobs and the run's."""
    head, *blocks = re.split(r"(?m)^(?=  - job_name: )", template)
    kept = [block for block in blocks if re.match(r"  - job_name: (\w+)", block)[1] in {*jobs, "weighbridge"}]  # type: ignore[index]
    text = "".join([head, *kept]).replace(RUN, run)
    head_every = re.sub(r"(?m)^  scrape_(interval|timeout): .*$", rf"  scrape_\1: {every}", text)
    for port in PORTS.values():
        head_every = head_every.replace(f'"127.0.0.1:{port}"', f'"127.0.0.1:{port + shift}"')
    return head_every


def programs(folder: Path, shift: int, cadvisor: Path | None, results: Path = RESULTS) -> list[Program]:
    """Return the programs in the order in which they start."""
    port = {job: number + shift for job, number in PORTS.items()}
    at = {job: f"127.0.0.1:{number}" for job, number in port.items()}
    node = ["--collector.disable-defaults", *(f"--collector.{each}" for each in COLLECTORS)]
    node.append(f"--collector.textfile.directory={results}")
    groups = [
        f"-config.path={HERE / 'process-exporter.yml'}",
        "-children=false",
        "-threads=false",
        "-gather-smaps=false",
    ]
    server = [
        f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=1d", "--log.level=warn",
    ]  # fmt: skip
    made = [
        Program("node", [_found(PACKAGES[1]), f"--web.listen-address={at['node']}", *node], port["node"]),
        Program(
            "process",
            [_found(PACKAGES[2]), f"-web.listen-address={at['process']}", *groups],
            port["process"],
        ),
    ]
    if cadvisor is not None:
        engine = os.environ.get("DOCKER_HOST", "")
        named = [f"-docker={engine}"] if engine.startswith("unix://") else []  # else the system's own socket
        made.append(Program("cadvisor", [str(cadvisor), f"-listen={at['cadvisor']}", *named], port["cadvisor"]))
    prometheus = [_found(PACKAGES[0]), f"--web.listen-address={at['prometheus']}", *server]
    return [*made, Program("prometheus", prometheus, port["prometheus"])]


def _found(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise Failed(f"{name} is not installed: apt-get install --no-install-recommends {name}")
    return path


def cadvisor_built(say: bool = True) -> Path | None:
    """Return cAdvisor, built once and kept in the user's cache. If that is impossible, print why and return None."""
    source = HERE / "cadvisor"
    key = hashlib.sha256(b"".join((source / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")))
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weighbridge"
    kept = Path(os.environ.get("WEIGHBRIDGE_CACHE") or base) / "monitoring" / f"cadvisor-{key.hexdigest()[:12]}"
    if kept.exists():
        return kept
    if not say:
        return None
    go = shutil.which("go")
    if go is None:
        print("cAdvisor is left out: it has no Debian package, and to build it needs Go.", flush=True)
        return None
    print("cAdvisor is built with Go: about two minutes, once.", flush=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    making = kept.with_name(f".building-{os.getpid()}")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    command = [go, "build", "-trimpath", "-ldflags=-s", "-o", str(making), "."]
    try:
        done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return making.rename(kept)
    finally:
        making.unlink(missing_ok=True)
    why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    print(f"cAdvisor is left out: Go could not build it: {why}", flush=True)
    return None


@contextmanager
def running(program: Program, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the program, wait until it answers, and always end it afterwards. Raises Failed if it does not start."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", program.port))
        except OSError as error:
            raise Failed(f"port {program.port} is taken: choose others with --shift 1000") from error
    log = folder / f"{program.job}.log"
    # It ends with us, also when we are killed; a session of its own keeps Ctrl-C for us.
    command = ["setpriv", "--pdeathsig", "KILL", *program.arguments]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, start_new_session=True) as process,
    ):
        try:
            _wait_until_it_answers(program, process, log)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_it_answers(program: Program, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while process.poll() is None and time.monotonic() < deadline:
        if _answers(program.port, "/-/ready" if program.job == "prometheus" else "/metrics"):
            return
        time.sleep(0.05)
    ended = "does not answer" if process.poll() is None else f"ended with code {process.returncode}"
    last = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
    raise Failed(f"{program.arguments[0]} {ended}: {last[:300]}")


def _answers(port: int, page: str) -> bool:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=2)) as connection:
        try:
            connection.request("GET", page)
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def watch(shift: int, every: str, run: str, cadvisor: Path | None, results: Path) -> None:
    """Start all programs and print their addresses. Raises Failed as soon as one of them ends by itself."""
    with tempfile.TemporaryDirectory(prefix="weighbridge-monitoring-") as name, ExitStack() as stack:
        folder = Path(name)
        wanted = programs(folder, shift, cadvisor, results)
        template = (HERE / "prometheus.yml").read_text(encoding="utf-8")
        text = configured(template, shift, every, run, {each.job for each in wanted})
        (folder / "prometheus.yml").write_text(text, encoding="utf-8")
        processes = [(each, stack.enter_context(running(each, folder))) for each in wanted]
        print(f"watching every {every}: {', '.join(each.job for each in wanted)}; runs at {run}", flush=True)
        print(f"Prometheus: http://127.0.0.1:{wanted[-1].port} (Ctrl-C ends all of it)", flush=True)
        while True:
            for each, process in processes:
                if process.poll() is not None:
                    raise Failed(f"{each.arguments[0]} ended with code {process.returncode}")
            time.sleep(0.2)


def _interval(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]{0,2}s", text):
        raise argparse.ArgumentTypeError("write it in seconds, like 5s")
    return text


def _shift(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > MOST_SHIFT:
        raise argparse.ArgumentTypeError(f"write a whole number from 0 to {MOST_SHIFT}, like 1000")
    return int(text)


def _address(text: str) -> str:
    if not re.fullmatch(r"127\.[0-9.]+:[0-9]{1,5}", text):
        raise argparse.ArgumentTypeError("write it like 127.0.0.1:9464, as with weighbridge run --metrics")
    return text


def _interrupted(number: int, _: FrameType | None) -> None:
    for each in ENDINGS:
        signal.signal(each, signal.SIG_IGN)  # the programs end in order, within a few seconds
    raise KeyboardInterrupt(number)


def main() -> int:
    """Run the program and return its exit code."""
    parser = argparse.ArgumentParser(description="Watch this machine until Ctrl-C.")
    parser.add_argument("--shift", type=_shift, default=0, metavar="N", help="add N to every port")
    parser.add_argument("--every", type=_interval, default="5s", metavar="TIME", help="scrape interval (5s)")
    parser.add_argument("--run", type=_address, default=RUN, metavar="ADDRESS", help=f"address of a run ({RUN})")
    parser.add_argument(
        "--results", type=lambda text: Path(text).resolve(), default=RESULTS, metavar="FOLDER",
        help="folder with .prom files of finished runs (results)",
    )  # fmt: skip
    parser.add_argument(
        "--cadvisor", choices=("build", "kept", "none"), default="build",
        help="build it unless it is cached, use it only if it is cached, or leave it out",
    )  # fmt: skip
    given = parser.parse_args()
    for number in ENDINGS:
        signal.signal(number, _interrupted)
    try:
        for name in PACKAGES:
            _found(name)  # before anything is built
        cadvisor = None if given.cadvisor == "none" else cadvisor_built(say=given.cadvisor == "build")
        watch(given.shift, given.every, given.run, cadvisor, given.results)
    except Failed as failure:
        print(f"run_here: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("ended", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
