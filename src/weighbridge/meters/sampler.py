"""Reads files of the kernel at a steady rate and keeps their text: one small process for a host and a whole session.

It uses the standard library alone and nothing of this project, for it is sent as text to whatever machine it is to
measure: ``python3 -I -S -c SOURCE``. While it measures it parses nothing, which keeps it cheap; while no trial runs
it sleeps. It ends when its standard input closes. Line by line, in JSON:

    {"do": "begin", "hz": 10, "files": {LABEL: PATH}, "most": {LABEL: BYTES}, "slow": [LABEL]}  ->  {"begun": true}
    {"do": "end"}  ->  {"at": [s, ...], "ticks": 100, "page": 4096, "cpu_s": own, "wall_s": own, "texts": PACKED}

``at`` are seconds since the first reading. ``texts`` is base64 of zlib of JSON: {LABEL: [TEXT or null, ...]}, with
null if a file could not be read or was not due. Files of ``slow`` are read at most once a second, and when the
trial ends, because each reading has a cost. ``most`` limits how much of a file is read. The path /proc/PID/ns/mnt
stands for every process in that mount namespace: the text is then their stat lines. A group's cgroup.procs stands for
what each process in it had from disks and wrote to them: the text is "pid: N" and that process's io file, one after
the other.
"""

import base64
import contextlib
import json
import os
import select
import sys
import time
import zlib
from typing import Any

CLOSED = -1
ENOUGH = 1 << 20
AT_ONCE = 8192
"""Bytes per call. A larger buffer costs more than the reading itself."""
WHOLE = 2048
"""The kernel returns a long table in pages of 4096 bytes. Only an answer shorter than this is surely complete."""
RESCAN_S = 1.0
SLOW_S = 0.95
"""Slightly less than the second after which slow files are due, because readings are slightly late."""


def close(fd: int) -> None:
    """Close a file descriptor unless it is None."""
    if fd != CLOSED:
        with contextlib.suppress(OSError):
            os.close(fd)


class File:
    """A file that stays open. It is opened again if it cannot be read from its beginning a second time."""

    def __init__(self, path: str, most: int) -> None:
        self.path, self.most, self.first, self.fd = path, most, min(most, AT_ONCE), CLOSED
        self._open()

    def _open(self) -> None:
        try:
            self.fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.fd = CLOSED

    def read(self) -> bytes | None:
        """Return the file's present bytes, or None if it cannot be read."""
        try:
            data = os.pread(self.fd, self.first, 0)
        except OSError:
            return self._read_anew()
        if WHOLE < len(data) < self.most:
            with contextlib.suppress(OSError):
                while chunk := os.pread(self.fd, min(AT_ONCE, self.most - len(data)), len(data)):
                    data += chunk
        return data

    def _read_anew(self) -> bytes | None:
        close(self.fd)
        self._open()
        data = b""
        try:
            while chunk := os.read(self.fd, min(AT_ONCE, self.most - len(data))):
                data += chunk
        except OSError:
            return None
        return data

    def close(self) -> None:
        """Close the descriptor."""
        close(self.fd)


class Members:
    """The stat lines of every process in a namespace. A chroot without control groups has its own namespace."""

    def __init__(self, path: str, _most: int) -> None:
        self.kind = path.partition("/ns/")[2]
        try:
            self.wanted: str | None = os.readlink(path)  # noqa: PTH115 - pathlib would have to be loaded for it
        except OSError:
            self.wanted = None
        self.files: dict[str, File] = {}
        self.scanned = -RESCAN_S

    def _scan(self) -> None:
        members = set()
        for name in os.listdir("/proc"):  # noqa: PTH208
            if name.isdigit():
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{name}/ns/{self.kind}") == self.wanted:  # noqa: PTH115
                        members.add(name)
        for name in self.files.keys() - members:
            self.files.pop(name).close()
        for name in members - self.files.keys():
            self.files[name] = File(f"/proc/{name}/stat", ENOUGH)

    def read(self) -> bytes | None:
        """Return one line for each process, or None if the namespace never existed."""
        if self.wanted is None:
            return None
        if time.monotonic() - self.scanned >= RESCAN_S:
            self.scanned = time.monotonic()
            self._scan()
        return b"".join(file.read() or b"" for file in self.files.values())

    def close(self) -> None:
        """Close every descriptor."""
        for file in self.files.values():
            file.close()


class Disks:
    """The io files of every process in a control group. The kernel does not always count a group's disk use."""

    def __init__(self, path: str, most: int) -> None:
        self.path, self.most = path, most
        self.files: dict[str, File] = {}

    def _read_list(self) -> bytes | None:
        """Return the group's processes. In version 1, an open file never changes, so open it each time."""
        members = File(self.path, self.most)
        try:
            return members.read()
        finally:
            members.close()

    def read(self) -> bytes | None:
        """Return a line with the number of each process before its file, or None if it cannot be read."""
        listed = self._read_list()
        if listed is None:
            return None
        processes = {name.decode() for name in listed.split()}
        for name in self.files.keys() - processes:
            self.files.pop(name).close()
        for name in processes - self.files.keys():
            self.files[name] = File(f"/proc/{name}/io", ENOUGH)
        texts = {name: file.read() for name, file in self.files.items()}
        return b"".join(b"pid: %s\n%s" % (name.encode(), text) for name, text in texts.items() if text)

    def close(self) -> None:
        """Close every descriptor."""
        for file in self.files.values():
            file.close()


def reader_of_path(path: str, most: int) -> File | Members | Disks:
    """Return the reader for the kind of a path."""
    if "/ns/" in path:
        return Members(path, most)
    return Disks(path, most) if path.endswith("/cgroup.procs") else File(path, most)


class SamplingSession:
    """The readings of one trial."""

    def __init__(self, order: dict[str, Any]) -> None:
        most: dict[str, int] = order.get("most", {})
        self.every = 1 / float(order["hz"])
        self.files = {label: reader_of_path(path, most.get(label, ENOUGH)) for label, path in order["files"].items()}
        slow = set(order.get("slow", ()))
        self.readers = [(file.read, label in slow) for label, file in self.files.items()]
        self.due = 0.0
        self.used = time.process_time()
        self.start, self.number = time.monotonic(), 0
        self.at: list[float] = []
        self.rows: list[list[bytes | None]] = []
        self.take()

    def take(self, *, last: bool = False) -> None:
        """Read every file that is due. Slow files are due after a second and at the ``last`` time."""
        now = time.monotonic() - self.start
        everything = last or now >= self.due
        if everything:
            self.due = now + SLOW_S
        self.at.append(now)
        self.rows.append([None if slow and not everything else read() for read, slow in self.readers])

    def left(self) -> float:
        """Return the seconds until the next reading is due. Missed readings are skipped."""
        now = time.monotonic() - self.start
        if now >= (self.number + 1) * self.every:
            self.number = int(now / self.every)
            self.take()
        return max(0.0, (self.number + 1) * self.every - (time.monotonic() - self.start))

    def close(self) -> None:
        """Close every descriptor, because an open file of a network namespace keeps the namespace."""
        for file in self.files.values():
            file.close()

    def end(self) -> dict[str, object]:
        """Take the last reading, and return all readings."""
        self.take(last=True)
        used, wall = time.process_time() - self.used, time.monotonic() - self.start
        self.close()
        texts = {
            label: [None if data is None else data.decode("latin-1") for data in column]
            for label, column in zip(self.files, zip(*self.rows, strict=True), strict=True)
        }
        return {
            "at": [round(at, 6) for at in self.at],
            "ticks": os.sysconf("SC_CLK_TCK"),
            "page": os.sysconf("SC_PAGE_SIZE"),
            "cpu_s": used,
            "wall_s": wall,
            "texts": base64.b64encode(zlib.compress(json.dumps(texts).encode(), 1)).decode(),
        }


def answer(message: dict[str, object]) -> None:
    """Write one line to standard output."""
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[os.write(1, data) :]


def main() -> int:
    """Serve until standard input closes."""
    session: SamplingSession | None = None
    waiting = b""
    while True:
        ready, _, _ = select.select([0], [], [], session.left() if session else None)  # noqa: TID251 - 0 is low
        if not ready:
            continue
        data = os.read(0, 1 << 16)
        if not data:
            return 0
        waiting += data
        while b"\n" in waiting:
            line, waiting = waiting.split(b"\n", 1)
            order = json.loads(line)
            if order["do"] == "begin":
                if session is not None:
                    session.close()
                session = SamplingSession(order)
                answer({"begun": True})
            elif session is not None:
                last_session, session = session, None
                answer(last_session.end())
            else:
                answer({"error": "nothing was started"})


if __name__ == "__main__":
    sys.exit(main())
