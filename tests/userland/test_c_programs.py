"""Our own C programs, built for real: what they print is what their workloads read."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from weighbridge.model.command import Completed
from weighbridge.userland import c
from weighbridge.workloads import allocations, stream, syscalls

pytestmark = [
    pytest.mark.real,
    pytest.mark.side_by_side,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
]
PROJECTS = [*c.PROJECTS]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    cache = tmp_path_factory.mktemp("cache")
    return {project: c.ensure(project, cache, print) for project in PROJECTS}


def ran(program: Path, *arguments: str) -> Completed:
    done = subprocess.run([program, *arguments], capture_output=True, timeout=60, check=False)
    return Completed((program.name, *arguments), done.returncode, done.stdout, done.stderr, 1.0)


def test_a_program_is_static_and_tells_its_compiler(programs: dict[str, Path]):
    for project, program in programs.items():
        assert b".interp" not in program.read_bytes(), "it wants a loader of the root folder that it runs in"
        versions = c.versions(program)
        assert re.search(r"\d+\.\d+", versions["cc (compiler)"]) and "\n" not in versions["cc (compiler)"]
        assert re.fullmatch("[0-9a-f]{16}", versions[f"weighbridge-{project} (C program)"])


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="no compiler for musl (musl-tools)")
def test_a_program_with_another_libc_has_its_allocator_and_says_so(tmp_path: Path):
    program = c.compiler("musl").ensure("allocations", tmp_path, print)
    usual = c.ensure("allocations", tmp_path, print)
    assert b".interp" not in program.read_bytes() and program.parent != usual.parent
    assert b"glibc.malloc" in usual.read_bytes() and b"glibc.malloc" not in program.read_bytes()
    assert re.fullmatch(r"musl \d+\.\d+\.\d+", c.versions(program)["libc (C library of C programs)"])
    options = allocations.PLUGIN.options.model_validate({"duration": "50ms", "threads": 2})
    for each in (program, usual):
        done = ran(each, *allocations.PLUGIN.command("solo", options, None).argv[1:])
        assert allocations.PLUGIN.parse(options, {"solo": done}).measurements[0].value > 0


def test_what_syscalls_prints_is_read(programs: dict[str, Path]):
    options = syscalls.PLUGIN.options.model_validate({"duration": "10ms"})
    done = ran(programs["syscalls"], *syscalls.PLUGIN.command("solo", options, None).argv[1:])
    rates = {each.metric.name: each.value for each in syscalls.PLUGIN.parse(options, {"solo": done}).measurements}
    assert rates["getppid"] > rates["open_close"] > rates["fork_exit"] > 0
    assert not list(Path("/tmp").glob("weighbridge-syscalls-??????"))


def test_what_stream_prints_is_read(programs: dict[str, Path]):
    options = stream.PLUGIN.options.model_validate({"array_size": "1MiB", "rounds": 3, "threads": 2})
    done = ran(programs["stream"], *stream.PLUGIN.command("solo", options, None).argv[1:])
    assert len(stream.PLUGIN.parse(options, {"solo": done}).measurements) == 5
    assert b'"copy", "bytes": 2097152,' in done.stdout and b'"triad", "bytes": 3145728,' in done.stdout


def test_threads_that_take_turns_on_one_cpu_do_not_multiply_its_bandwidth(programs: dict[str, Path]):
    """Their best round was four times as fast when only the first thread looked at the clock: it was often late."""
    cpu, best = str(min(os.sched_getaffinity(0))), {1: 0.0, 4: 0.0}
    for threads in (1, 4, 1, 4):
        options = stream.PLUGIN.options.model_validate({"array_size": "4MiB", "rounds": 100, "threads": threads})
        command = stream.PLUGIN.command("solo", options, None).argv
        done = ran(Path("taskset"), "-c", cpu, str(programs["stream"]), *command[1:])
        values = {each.metric.name: each.value for each in stream.PLUGIN.parse(options, {"solo": done}).measurements}
        assert values["triad_mean"] <= values["triad_best"]
        best[threads] = max(best[threads], values["triad_best"])
    assert best[4] < 1.5 * best[1]


def test_the_corpus_is_the_same_bytes_everywhere(programs: dict[str, Path], tmp_path: Path):
    done = ran(programs["corpus"], "1000000", str(tmp_path / "text"), "sha256sum", str(tmp_path / "text"))
    assert done.returncode == 0
    assert done.text.split()[0] == "ac7dd1f16053edac228fbc52682029468e262e3e32d63a0a7f6ad5bea384bc67"
    assert (tmp_path / "text").stat().st_size == 1_000_000


@pytest.mark.parametrize(
    ("project", "arguments", "returncode", "words"),
    [
        ("syscalls", [], 2, "usage: "),
        ("syscalls", ["0"], 2, "usage: "),
        ("syscalls", ["1s"], 2, "usage: "),
        ("stream", ["8", "2", "2"], 2, "usage: "),
        ("stream", ["1048576", "1", "1"], 2, "usage: "),
        ("stream", ["99999999999999999999", "2", "1"], 2, "usage: "),
        ("stream", ["1000000000000", "2", "1"], 1, "no memory for an array: Cannot allocate memory"),
        ("allocations", ["50", "0", "1024"], 2, "usage: "),
        ("corpus", ["10", "/tmp/x"], 2, "usage: "),
        ("corpus", ["10", "/nonexistent/x", "true"], 1, "/nonexistent/x: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_said(
    programs: dict[str, Path], project: str, arguments: list[str], returncode: int, words: str
):
    done = ran(programs[project], *arguments)
    assert (done.returncode, done.stdout) == (returncode, b"")
    assert words in done.last_words


def test_a_program_that_is_not_there_fails_after_the_corpus(programs: dict[str, Path], tmp_path: Path):
    done = ran(programs["corpus"], "10", str(tmp_path / "text"), "weighbridge-no-such-program")
    assert (done.returncode, done.last_words) == (
        1,
        "weighbridge-corpus: weighbridge-no-such-program: No such file or directory",
    )
