"""The sampler's parts, in this process and on files: what it reads, when, and what it answers."""

import ast
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.linux.process_files import disk_use
from weighbridge.meters import sampler
from weighbridge.meters.meter import MeterFailed
from weighbridge.meters.readings import Readings, unpack
from weighbridge.meters.sampler import Disks, File, Members, SamplingSession


def answered(session: SamplingSession) -> Readings:
    return unpack(json.dumps(session.end()).encode())


def test_it_stands_alone():
    tree = ast.parse(Path(sampler.__file__).read_text())
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names == {"base64", "contextlib", "json", "os", "select", "sys", "time", "typing", "zlib"}


def test_an_open_file_is_read_as_it_is_now(tmp_path: Path):
    path = tmp_path / "file"
    path.write_text("one")
    file = File(str(path), 100)
    assert file.read() == b"one"
    path.write_text("three")
    assert file.read() == b"three"
    path.write_text("")
    assert file.read() == b""
    file.close()


@pytest.mark.parametrize("size", [0, 1, 2048, 2049, 8192, 8193, 50_000])
def test_a_long_file_is_read_to_its_end(tmp_path: Path, size: int):
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    assert File(str(tmp_path / "file"), 1 << 20).read() == data
    assert File(str(tmp_path / "file"), 5000).read() == data[:5000]
    assert File(str(tmp_path / "file"), 10).read() == data[:10]


def test_a_file_that_appears_and_goes(tmp_path: Path):
    file = File(str(tmp_path / "late"), 100)
    assert file.read() is None
    (tmp_path / "late").write_text("here")
    assert file.read() == b"here"
    os.close(file.fd)
    assert file.read() == b"here", "it is opened again"
    os.close(file.fd)
    (tmp_path / "late").unlink()
    assert file.read() is None
    file.close()


def test_a_session_keeps_every_text_with_its_time(tmp_path: Path):
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "ü").write_bytes(b"\xff\n")
    files = {"host x/a": str(tmp_path / "a"), "server/b": str(tmp_path / "ü"), "client/c": str(tmp_path / "none")}
    session = SamplingSession({"hz": 10, "files": files, "most": {"host x/a": 1}})
    (tmp_path / "a").write_text("22\n")
    session.take()
    found = answered(session)
    assert found.texts == {"host x/a": ["1", "2", "2"], "server/b": ["ÿ\n"] * 3, "client/c": [None] * 3}
    assert found.at[0] < 0.01
    assert len(found.at) == 3
    assert (found.ticks, found.page) == (os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE"))
    assert 0 <= found.own_cpu_s < 1


def test_readings_are_due_at_a_steady_rate(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(sampler.time, "monotonic", lambda: now[0])
    session = SamplingSession({"hz": 4, "files": {}})
    waits = []
    for now[0] in (100.0, 100.1, 100.25, 100.26, 100.9, 101.0):
        waits.append(round(session.left(), 3))
    assert waits == [0.25, 0.15, 0.25, 0.24, 0.1, 0.25]
    assert session.at == [0.0, 0.25, pytest.approx(0.9), 1.0], "what was missed is left out"
    now[0] = 101.05
    assert answered(session).at == pytest.approx((0.0, 0.25, 0.9, 1.0, 1.05)), "the end is a reading too"


def test_slow_files_are_read_once_a_second_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(sampler.time, "monotonic", lambda: now[0])
    (tmp_path / "a").write_text("1")
    files = {"host x/fast": str(tmp_path / "a"), "host x/slow": str(tmp_path / "a")}
    session = SamplingSession({"hz": 4, "files": files, "slow": ["host x/slow"]})
    for now[0] in (100.25, 100.5, 100.75, 101.0, 101.25):
        session.left()
    assert answered(session).texts == {
        "host x/fast": ["1"] * 7,
        "host x/slow": ["1", None, None, None, "1", None, "1"],
    }


def test_the_disk_use_of_a_group_s_processes(tmp_path: Path):
    members = tmp_path / "cgroup.procs"
    members.write_text(f"{os.getpid()}\n999999999\n")
    group = Disks(str(members), 1 << 20)
    text = (group.read() or b"").decode()
    assert text.startswith(f"pid: {os.getpid()}\nrchar: ") and text.count("pid: ") == 1
    (before, after) = disk_use([text, (group.read() or b"").decode()])
    assert before is not None and after is not None
    assert after.counters["disk_written_bytes_per_s"] >= before.counters["disk_written_bytes_per_s"]
    members.write_text("")
    assert group.read() == b"" and not group.files
    group.close()
    assert Disks(str(tmp_path / "none" / "cgroup.procs"), 100).read() is None


def test_the_processes_of_a_namespace():
    mine = Members("/proc/self/ns/mnt", 0)
    text = (mine.read() or b"").decode()
    assert f"\n{os.getpid()} (" in f"\n{text}"
    mine.close()
    assert Members("/proc/999999999/ns/mnt", 0).read() is None


GOOD = json.dumps(SamplingSession({"hz": 1, "files": {}}).end()).encode()


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"{}", b"[]", b"null", b'{"error": "nothing was begun"}', GOOD[:-9], GOOD.replace(b"100", b"0")],
)
def test_an_answer_that_is_none(line: bytes):
    with raises_sentence(MeterFailed):
        unpack(line)


@given(st.binary(max_size=60), st.integers(0, len(GOOD)), st.integers(0, 30))
def test_any_answer(noise: bytes, at: int, gone: int):
    for line in (noise, GOOD[:at] + noise + GOOD[at + gone :]):
        try:
            assert all(len(column) == len(unpack(line).at) for column in unpack(line).texts.values())
        except MeterFailed as failure:
            assert "\n" not in str(failure)
