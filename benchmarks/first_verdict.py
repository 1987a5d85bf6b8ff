"""How long a user waits for `weighbridge weigh`: from Enter to the first estimate, the verdict and the exit.

Each run has a terminal, because the first estimate is shown only there. "Verdict" is the time of the line with the
path of the page, so it includes the page. CPU time is user and system time of the command and of all programs that
it started. Idle CPUs halt (``--cpu-idle halt``): the time of pollers is not a cost. The first run of a checkout
is not counted: it builds the launcher and Python's byte code.

With ``--base``, runs of another checkout alternate with runs of this one. Each ratio is the time of this checkout
divided by the time of the other: the geometric mean of the pairs, with Student's 95% interval.

    .venv/bin/python benchmarks/first_verdict.py --base ../main --runs 10
    .venv/bin/python benchmarks/first_verdict.py --in docker --docker unix:///var/run/docker.sock
    .venv/bin/python benchmarks/first_verdict.py --options='' -- dd if=/dev/zero of=/dev/null bs=1 count=10000
"""

import argparse
import fcntl
import os
import pty
import re
import shlex
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from weighbridge.linux.process import wait_readable
from weighbridge.statistics.parametric import t_interval

HERE = Path(__file__).parents[1]
FIRST_ESTIMATE = re.compile(rb"after \d+ rounds?")
VERDICT = re.compile(rb"report: ")
ROWS, COLUMNS = 50, 100
LIMIT_S = 600.0
TITLES = {"estimate_s": "first estimate", "verdict_s": "verdict", "exit_s": "exit", "cpu_s": "CPU time"}


@dataclass(frozen=True, slots=True)
class Wait:
    """The seconds from Enter, and the CPU seconds, of one command."""

    estimate_s: float
    verdict_s: float
    exit_s: float
    cpu_s: float


def measure(argv: Sequence[str], env: Mapping[str, str]) -> Wait:
    """Run a command in a terminal. Raises RuntimeError with its output if it fails or shows no verdict."""
    started, output, seen = time.monotonic(), b"", dict[str, float]()
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.execve(argv[0], [*argv], dict(env))
    while time.monotonic() - started < LIMIT_S:
        ready = wait_readable(terminal, timeout_s=1.0)
        try:
            output += (data := os.read(terminal, 65536)) if ready else (data := b"\0")
        except OSError:  # EIO: the command has closed its terminal
            break
        if not data:
            break
        for name, pattern in (("estimate_s", FIRST_ESTIMATE), ("verdict_s", VERDICT)):
            if name not in seen and pattern.search(output):
                seen[name] = time.monotonic() - started
    else:
        os.kill(pid, 15)
    _, status, used = os.wait4(pid, 0)
    exit_s = time.monotonic() - started
    os.close(terminal)
    if os.waitstatus_to_exitcode(status) != 0 or "verdict_s" not in seen:
        raise RuntimeError(f"{shlex.join(argv)} ended with {status}:\n{output.decode(errors='replace')}")
    return Wait(seen.get("estimate_s", exit_s), seen["verdict_s"], exit_s, used.ru_utime + used.ru_stime)


def weigh(checkout: Path, folder: Path, arguments: argparse.Namespace) -> Wait:
    """Measure one `weigh` of a checkout, with a cache and byte code of its own."""
    own = folder / checkout.name
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {
        "PYTHONPATH": str(checkout / "src"), "PYTHONPYCACHEPREFIX": str(own / "code"), "TERM": "xterm",
        "WEIGHBRIDGE_CACHE": str(own / "cache"), "WEIGHBRIDGE_ALLOW_CONCURRENT": "yes",
    }  # fmt: skip
    if arguments.docker:
        env["DOCKER_HOST"] = arguments.docker
    with tempfile.TemporaryDirectory(dir=folder) as run:
        options = ["--in", arguments.inside, "--cpu-idle", "halt", *shlex.split(arguments.options)]
        argv = [sys.executable, "-m", "weighbridge", "weigh", *options, "--out", f"{run}/run", "--"]
        return measure([*argv, *(arguments.program or ["true"])], env)


def row(title: str, values: Sequence[float], base: Sequence[float]) -> str:
    """Return the median of each checkout, and the ratio of the pairs with its interval."""
    line = f"{title:15} {statistics.median(values):8.2f} s"
    if not base:
        return line
    line += f" {statistics.median(base):8.2f} s"
    if len(values) < 2:
        return line
    ratio = t_interval(np.log(np.asarray(values) / np.asarray(base)), 0.95)
    low, middle, high = np.exp([ratio.low, ratio.estimate, ratio.high])
    return f"{line}   {middle:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    """Measure, and print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="another checkout to compare with")
    parser.add_argument("--runs", type=int, default=10, help="runs of each checkout")
    parser.add_argument("--in", dest="inside", default="netns", help="the environments")
    parser.add_argument("--docker", default="", help="DOCKER_HOST of an engine, for --in docker")
    parser.add_argument("--options", default="--rounds 6", help="further options of weigh")
    parser.add_argument("program", nargs="*", help="the program to measure; default: true")
    arguments = parser.parse_args()
    checkouts = [HERE, *([arguments.base.resolve()] if arguments.base else [])]
    waits: dict[Path, list[Wait]] = {checkout: [] for checkout in checkouts}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.runs + 1):
            for checkout in checkouts if number % 2 else reversed(checkouts):
                wait = weigh(checkout, Path(folder), arguments)
                if number:
                    waits[checkout].append(wait)
    print(f"{'':15} {'this':>10}" + (f" {'base':>10}   ratio [95% interval]" if arguments.base else ""))
    for each in fields(Wait):
        of_checkout = [[getattr(wait, each.name) for wait in waits[checkout]] for checkout in checkouts]
        print(row(TITLES[each.name], of_checkout[0], of_checkout[1] if arguments.base else []))


if __name__ == "__main__":
    main()
