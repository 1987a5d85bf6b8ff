"""The programs in C as they are for arm64: compiled by a cross compiler, and run by QEMU's emulation of programs."""

import itertools
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.features.guests import ramdisk
from weighbridge.launcher import build
from weighbridge.launcher.launch import Launcher
from weighbridge.linux import static_c
from weighbridge.model.command import Command
from weighbridge.userland import c

CC, QEMU = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
MISSING = [program for program in (CC, QEMU) if shutil.which(program) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING),
    reason=f"needs {', '.join(MISSING)} (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user-static)",
)
PROJECTS = [*c.PROJECTS]


def compiled(folder: Path, options: tuple[str, ...], program: Path) -> Path:
    sources = [str(path) for path in sorted(folder.glob("*.c"))]
    subprocess.run([CC, *options, "-Werror", "-o", program, *sources], check=True)
    header = program.read_bytes()[:20]
    assert header[:5] == b"\x7fELF\x02" and int.from_bytes(header[18:20], "little") == 183  # EM_AARCH64
    return program


class Pipes:
    """The stream to a program that a test started. Implements ``Stream``."""

    def __init__(self, program: "subprocess.Popen[bytes]") -> None:
        self.program = program

    def send(self, data: bytes) -> None:
        assert self.program.stdin is not None
        self.program.stdin.write(data)
        self.program.stdin.flush()

    def receive(self, timeout_s: float | None = None) -> bytes:
        assert self.program.stdout is not None
        return self.program.stdout.read1(2**16)

    def end(self) -> None:
        assert self.program.stdin is not None
        self.program.stdin.close()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(build.SOURCE, static_c.OPTIONS, tmp_path_factory.mktemp("arm64") / build.NAME)


@pytest.fixture
def launcher(program: Path) -> Iterator[Launcher]:
    """It has this machine's network and files; the programs that it starts are this machine's, too."""
    argv = [QEMU, str(program), "--files", "512"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        with Launcher(Pipes(running), "arm64", lambda: "it has gone", {"PATH": "/usr/bin:/bin"}) as opened:
            yield opened
        assert running.wait(10) == 0


def test_a_program_s_output_code_and_use(launcher: Launcher):
    done = launcher.run(Command(("sh", "-c", "cat; echo out; echo err >&2; exit 3"), 20, stdin=b"in\n"))
    assert (done.returncode, done.stdout, done.stderr, done.timed_out) == (3, b"in\nout\n", b"err\n", False)
    assert done.usage is not None and done.usage.peak_memory > 2**18 and done.duration_s > 0
    assert launcher.open_files == 512


def test_a_program_is_killed_at_its_deadline_with_what_it_left(launcher: Launcher):
    done = launcher.run(Command(("sh", "-c", "sleep 100 & echo begun; wait"), 5))
    assert done.timed_out and done.stdout == b"begun\n"
    assert launcher.alone()


def test_files(launcher: Launcher, tmp_path: Path):
    data = bytes(range(256)) * 2000
    launcher.put(str(tmp_path / "file"), data, mode=0o640)
    assert (tmp_path / "file").read_bytes() == data == launcher.read(str(tmp_path / "file"))
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    with pytest.raises(FileNotFoundError):
        launcher.read(str(tmp_path / "none"))


def test_it_reads_the_kernel_s_answer_of_who_listens(launcher: Launcher):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert launcher.listening((("tcp", port),))
    assert not launcher.listening((("tcp", port),))


def test_the_first_process_of_guests_is_compiled(tmp_path: Path):
    compiled(ramdisk._SOURCE, static_c.OPTIONS, tmp_path / "init")


@pytest.mark.parametrize("project", PROJECTS)
def test_a_measured_program_says_what_it_says_here(tmp_path: Path, project: str):
    """Figures differ; what they are of does not, and what is made of no clock is the same to the bit."""
    there = compiled(c.PROJECTS[project], c._OPTIONS, tmp_path / f"weighbridge-{project}")
    here = c.ensure(project, tmp_path / "cache", lambda _: None)
    said = _said(project, [str(here)], tmp_path / "here")
    assert said and said == _said(project, [QEMU, str(there)], tmp_path / "there")


def _said(project: str, argv: list[str], folder: Path) -> object:
    folder.mkdir()
    if project == "powercut":
        words = (str(folder / "records"), "fsync", "0123456789abcdef", str(folder / "acknowledged"), "1000")
        with subprocess.Popen([*argv, *words]) as running:
            with pytest.raises(subprocess.TimeoutExpired):
                running.wait(1)
            running.kill()
        return (folder / "records").read_bytes()[:4096], (folder / "acknowledged").stat().st_size > 0
    if project == "corpus":
        subprocess.run([*argv, "200000", folder / "text", "true"], check=True)
        return (folder / "text").read_bytes()
    words = {"stream": ("1048576", "2", "2"), "syscalls": ("20",), "allocations": ("20", "2", "1024")}[project]
    done = subprocess.run([*argv, *words], check=False, capture_output=True)
    assert done.returncode == 0 or (project == "syscalls" and b"Exec format error" in done.stderr), done
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    # that call starts the program itself anew, which the kernel cannot without binfmt_misc
    lines = [*itertools.takewhile(lambda line: line.get("call") != "fork_exec", lines)]
    assert all(value for line in lines for value in line.values())
    measured = {"count", "allocations", "nanoseconds", "best_nanoseconds"}
    return [{key: key in measured or value for key, value in line.items()} for line in lines]
