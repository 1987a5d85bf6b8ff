"""The files of a site's control group, version 1 and 2, from the tree to the series."""

import json
from pathlib import Path

import pytest

from weighbridge.linux.cgroup_files import scope_files
from weighbridge.meters import sampler
from weighbridge.meters.readings import unpack
from weighbridge.meters.sampler import SamplingSession
from weighbridge.meters.series import series

V1 = {
    "cpuacct/cpuacct.usage": ("0\n", "2000000000\n"),
    "cpu/cpu.stat": ("nr_periods 0\nthrottled_time 0\n", "nr_periods 9\nthrottled_time 500000000\n"),
    "memory/memory.usage_in_bytes": ("1000\n", "4096\n"),
    "memory/memory.stat": (
        "rss 1\ntotal_cache 20\ntotal_rss 5\ntotal_shmem 8\n", "total_cache 20\ntotal_rss 7\ntotal_shmem 8\n"
    ),
    "pids/pids.current": ("0\n", "3\n"),
    "cpu/cgroup.procs": ("", ""),
}  # fmt: skip
V2 = {
    "cpu.stat": ("usage_usec 0\nthrottled_usec 0\n", "usage_usec 2000000\nthrottled_usec 500000\n"),
    "memory.current": ("1000\n", "4096\n"),
    "memory.stat": ("anon 5\nfile 20\nshmem 8\n", "anon 7\nfile 20\nshmem 8\n"),
    "pids.current": ("0\n", "3\n"),
    "cgroup.procs": ("", ""),
}


def _write(folder: Path, files: dict[str, tuple[str, str]], when: int) -> None:
    for name, texts in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(texts[when])


@pytest.mark.parametrize(("version", "files"), [(1, V1), (2, V2)])
def test_both_versions_give_the_same_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, files: dict[str, tuple[str, str]]
):
    now = [0.0]
    monkeypatch.setattr(sampler.time, "monotonic", lambda: now[0])
    scope = scope_files(version, lambda controller: tmp_path / controller if version == 1 else tmp_path)
    assert sorted(scope.values()) == sorted(str(tmp_path / name) for name in files)
    _write(tmp_path, files, 0)
    session = SamplingSession({"hz": 1, "files": {f"server/{label}": path for label, path in scope.items()}})
    _write(tmp_path, files, 1)
    now[0] = 2.0
    found = {each.name: each.values for each in series(unpack(json.dumps(session.end()).encode()))}
    assert found == {
        "cpu_share": (1.0,), "throttled_share": (0.25,), "memory_bytes": (1000.0, 4096.0),
        "memory_anonymous_bytes": (5.0, 7.0), "memory_shared_bytes": (8.0, 8.0), "memory_files_bytes": (12.0, 12.0),
        "pids_count": (0.0, 3.0), "disk_read_bytes_per_s": (0.0,), "disk_written_bytes_per_s": (0.0,),
    }  # fmt: skip
