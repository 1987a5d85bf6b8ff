"""The first process of namespaces of their own: makes bases and canaries, tries cases, and prints the results.

    tests/hostile/sandbox.sh --count 300 --seed 1
    tests/hostile/sandbox.sh --match 'study:file .*link.*:(run-continue|gate)'
    tests/hostile/sandbox.sh --case 'study:run.value[run_id]=absolute:run-continue'

A line of JSON for each case: its ``case``, ``faults``, ``seconds``, ``code``; of a case that is named, all that the
command printed.
"""

import argparse
import contextlib
import gc
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
_OF_OTHERS = re.compile(r"was killed|was emptied|did not end within|/etc/\S+ was changed")
"""What others on this machine can do (`weighbridge clean`, a changed /etc), or its load: tried once more."""


def main(arguments: Sequence[str]) -> None:
    """Try the cases that the options choose."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="so many of the first cases are left out")
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--match", help="every case whose name matches this regular expression from its start")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(arguments)
    if os.getpid() != 1:
        sys.exit("this removes files and kills processes: start it by tests/hostile/sandbox.sh")
    close_off()
    Sandbox().go(options)


# -- the namespaces -----------------------------------------------------------------------------------


def close_off() -> None:
    """Have a root folder of our own, in which all of this machine is read-only, and empty where commands write."""
    new = Path("/run/new-root")
    new.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", "mode=755", "hostile", new)
    for entry in Path("/").iterdir():
        if entry.is_symlink():
            (new / entry.name).symlink_to(entry.readlink())
        elif entry.is_dir():
            (new / entry.name).mkdir()
            if entry.name not in _EMPTY:
                _mount("--rbind", entry, new / entry.name)
    for name in (*_EMPTY, "var/tmp"):
        (new / name).mkdir(parents=True, exist_ok=True)
        _mount("-t", "tmpfs", "-o", f"size=2g,mode={1777 if name.endswith('tmp') else 755}", "hostile", new / name)
    for path in (ROOT, Path(sys.prefix), Path(sys.base_prefix)):
        if not (new / path.relative_to("/")).exists():
            (new / path.relative_to("/")).mkdir(parents=True)
            _mount("--bind", path, new / path.relative_to("/"))
    os.chdir(new)
    subprocess.run(("pivot_root", ".", "."), check=True)
    subprocess.run(("umount", "-l", "."), check=True)
    os.chdir("/srv")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        kind, at = line.split()[2], line.split()[1].encode().decode("unicode_escape")
        if at != "/" and not at.startswith(_WRITABLE):
            _mount("-o", "remount,bind,ro", at, must=kind not in ("devpts", "mqueue"))
    subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
    _mount("--bind", "/proc/sys", "/proc/sys")
    _mount("--bind", "/proc/sys/net", "/proc/sys/net")  # a run sets these in networks of its own
    _mount("-o", "remount,bind,ro", "/proc/sys")


_EMPTY = ("srv", "root", "home", "tmp", "run")
_WRITABLE = (
    "/proc",
    "/sys/fs/cgroup",
    "/dev/shm",
    "/etc",
    "/opt",
    "/var/lib",
    "/var/tmp",
    *(f"/{name}" for name in _EMPTY),
)


def _mount(*words: object, must: bool = True) -> None:
    subprocess.run(("mount", *map(str, words)), check=must, stderr=None if must else subprocess.DEVNULL)


# -- the cases ----------------------------------------------------------------------------------------


class Sandbox:
    """Tries cases one after the other, each in a process of its own that has all modules already."""

    def __init__(self) -> None:
        os.environ |= {"HOME": "/root", "WEIGHBRIDGE_REHEARSAL": "yes", "WEIGHBRIDGE_BESIDE_OTHERS": "yes"}
        for name in ("XDG_RUNTIME_DIR", "WEIGHBRIDGE_CACHE", "XDG_CACHE_HOME"):
            os.environ.pop(name, None)
        from weighbridge.linux import cgroups

        from . import canaries, commands, verdict

        self._cgroups, self._verdict, self._commands = cgroups, verdict, commands
        self._folder = canaries.CASES
        self._snapshot = canaries.snapshot
        self._canaries = canaries.Canaries()
        _import_everything()

    def go(self, options: argparse.Namespace) -> None:
        """Make the bases, choose the cases and try them."""
        from . import bases, campaign

        began = time.monotonic()
        self._bases = bases.make_bases(Path("/srv/bases"), self._command)
        if options.case:
            chosen = [campaign.named(self._bases, name) for name in options.case]
        elif options.match:
            chosen = campaign.matching(self._bases, options.match)
        else:
            chosen = campaign.chosen(self._bases, options.count, options.seed)
        if options.list:
            print("\n".join(case.name for case in chosen))
            return
        self._canaries.lay()
        gc.collect()
        gc.freeze()
        _print({"chosen": len(chosen), "seconds": round(time.monotonic() - began, 3), "cpu_s": time.process_time()})
        for case in chosen[options.skip :]:
            began = time.monotonic()
            result = self._try(case, in_full=bool(options.case))
            if result["faults"] and all(map(_OF_OTHERS.search, result["faults"])):
                result = {**self._try(case, in_full=False), "first": result["faults"]}
            _print(result | {"wall": round(time.monotonic() - began, 3)})
        self._canaries.lift()
        used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        _print({"ended": len(chosen), "cpu_s": round(sum(each.ru_utime + each.ru_stime for each in used), 1)})

    def _try(self, case: object, *, in_full: bool) -> dict[str, object]:
        from .campaign import FLEETS, Case

        assert isinstance(case, Case)
        self._folder.mkdir()
        above, other = self._folder / "above", self._folder / "other"
        run = above / "run"
        shutil.copytree(self._bases[case.base], run)
        if "{other}" in case.line or "{above}" in case.line:
            shutil.copytree(self._bases["fleet" if case.base in FLEETS else "other"], other)
        if case.command.startswith(("history", "fleet-report-run")):
            other.rename(above / "other")
        (self._folder / "cwd").mkdir()
        case.mutation.apply(run)
        names = {
            "{run}": str(run), "{other}": str(other), "{above}": str(above), "{new}": str(self._folder / "new"),
            "{study}": "/srv/bases/study.yaml", "{list}": "/srv/bases/hosts.txt",
        }  # fmt: skip
        words = [_filled(word, names) for word in case.line.split()]
        before = self._snapshot()
        ended = self._run(words, self._folder / "cwd", self._verdict.TIME_LIMIT_S)
        faults = self._verdict.faults_of(case.line, ended)
        faults += self._leftovers()
        if touched := self._canaries.touched(before):
            faults += [f"touched: {each}" for each in touched[:20]]
            self._canaries.lift()
            self._canaries.lay()
        subprocess.run(("rm", "-rf", "--one-file-system", self._folder), check=True)
        shown = {"case": case.name, "faults": faults, "code": ended.code, "seconds": round(ended.seconds, 3)}
        told = ended.stderr.decode(errors="replace")
        return (
            shown
            | {"stderr": told if in_full else told[-1500:]}
            | ({"stdout": ended.stdout.decode(errors="replace")} if in_full else {})
        )

    def _command(self, *words: str) -> int:
        ended = self._run(list(words), Path("/srv"), 300.0)
        if ended.code != 0:
            sys.stderr.write(ended.stderr.decode(errors="replace"))
        return ended.code if ended.code is not None else 124

    def _run(self, words: list[str], cwd: Path, limit_s: float) -> "object":
        from weighbridge.linux.process import wait_readable

        began = time.monotonic()
        with _files() as (out, err):
            pid = os.fork()
            if pid == 0:
                _become(words, cwd, out, err)
            descriptor = os.pidfd_open(pid)
            ready = wait_readable(descriptor, timeout_s=limit_s)
            if not ready:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            os.close(descriptor)
            _, status = os.waitpid(pid, 0)
            code = os.waitstatus_to_exitcode(status) if ready else None
            seconds = time.monotonic() - began
            return self._verdict.Ended(code, _content(out), _content(err), seconds)

    def _leftovers(self) -> list[str]:
        """End every process that is neither ours nor a canary, remove other runs' states, and tell what was there."""
        from .values import LIVE_RUN

        faults, deadline = [], time.monotonic() + 1.0
        while (others := _processes() - self._canaries.pids) and time.monotonic() < deadline:
            _reap(others)
            time.sleep(0.005)
        for pid in others:
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                os.kill(pid, signal.SIGKILL)
                faults.append(f"left: a process ({words[:120].strip()})")
        _reap(others)
        states = Path("/run/weighbridge")
        for state in [*states.iterdir()] if states.is_dir() else []:
            if state.name != LIVE_RUN:
                faults.append(f"left: the state folder {state.name}")
                shutil.rmtree(state) if state.is_dir() else state.unlink()
        for top in self._cgroups.TOPS:
            for run in self._cgroups.runs(top=top):
                if run != LIVE_RUN:
                    faults.append(f"left: the control group {top}/{run}")
                    for group in self._cgroups.groups_of(run):
                        group.remove()
        return faults


def _filled(word: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        word = word.replace(name, value)
    return word


def _become(words: list[str], cwd: Path, out: int, err: int) -> None:
    """Be a ``weighbridge`` with these words, in a child process."""
    code = 70
    try:
        os.setsid()
        os.chdir(cwd)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        os.closerange(3, 256)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(io.FileIO(2, "w", closefd=False)), line_buffering=True)
        sys.argv = ["weighbridge", *words]
        from weighbridge.__main__ import main as weighbridge

        from . import as_python

        try:
            as_python.main(*words[1:]) if words[0] == "python" else weighbridge()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        except BaseException:  # as Python's own end
            import traceback

            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


@contextmanager
def _files() -> Iterator[tuple[int, int]]:
    out, err = (os.memfd_create(name, os.MFD_CLOEXEC) for name in ("stdout", "stderr"))
    try:
        yield out, err
    finally:
        os.close(out)
        os.close(err)


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, 64 * 2**20, 0)


def _processes() -> set[int]:
    return {int(name) for name in (path.name for path in Path("/proc").iterdir()) if name.isdecimal()} - {1}


def _reap(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)


def _import_everything() -> None:
    import importlib
    import pkgutil

    import altair  # noqa: F401 - what commands import where they need it
    import scipy.stats  # noqa: F401
    import typer
    import vl_convert

    import weighbridge
    from weighbridge.cli.app import app

    vl_convert.javascript_bundle = lambda *_, **__: "let vega;"  # three seconds of each process that writes a page
    for module in pkgutil.walk_packages(weighbridge.__path__, "weighbridge."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    for command in typer.main.get_command(app).commands.values():  # to make them takes as long as most of them take
        [*getattr(command, "commands", {}).values()]


def _print(document: dict[str, object]) -> None:
    print(json.dumps(document), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
