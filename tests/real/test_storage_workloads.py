"""Databases and tools of storage that other tests' userlands lack, in one study."""

from pathlib import Path

import pytest

from weighbridge.model.userland import UserlandSpec
from weighbridge.registry import workloads
from weighbridge.store.run import RunStore
from weighbridge.userland.build import ensure, key_of

from .weighing import IN_STORAGE_TESTS, facts, trials, weighbridge, write_study

NATIVE = "native: {kind: native, storage: directory}"
WORKLOADS = (
    "sql: {kind: pgbench, scale: 1, clients: [2, 40], max_connections: 20, duration: 1s, warm_up: 0s}",
    "file: {kind: fio, file_size: 8MiB, fsync: 4, duration: 1s}",
    "deep: {kind: fio, mode: randread, engine: libaio, direct: true, depth: 8, file_size: 8MiB, duration: 1s}",
    "small: {kind: metadata, operation: [create, stat, delete], files: 500, jobs: 2}",
    "rows: {kind: sqlite, commits: 200}",
    "large: {kind: bonnie, file_size: 16MiB, files: 6}",
)


@pytest.mark.long  # a userland of their own, with PostgreSQL
@pytest.mark.promise("tools of storage and databases are measured, and a limit of connections is a result")
def test_tools_of_storage(cache: Path, tmp_path: Path):
    spec = UserlandSpec.union(each.userland() for kind, each in workloads().items() if kind in IN_STORAGE_TESTS)
    kept = ensure(spec, Path.home() / ".cache/weighbridge", print)
    (cache / "userlands" / key_of(spec)).symlink_to(kept.root.parent)
    study = write_study(tmp_path, environments=(NATIVE,), workloads=WORKLOADS, blocks=1, resources="{}")
    run = tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes")
    rows = trials(run)
    print(
        *((row["environment"], row["workload"], row["level"], row["outcome"], row["message"]) for row in rows),
        sep="\n",
    )
    over = [row for row in rows if row["workload"] == "sql" and "40" in row["level"]]
    assert {row["outcome"] for row in over} == {"broke"}
    assert all("40 clients" in row["message"] for row in over)
    sure = [row for row in rows if row not in over and row["workload"] != "large"]
    assert {row["outcome"] for row in sure} == {"ok"}, done
    assert len({(row["workload"], row["level"]) for row in sure}) == 7
    for row in (row for row in rows if row["workload"] == "large"):  # a quick disk has no figure: all is run again
        assert row["outcome"] == "ok" or "less than half a second" in row["message"], row
    with RunStore(run) as store:
        latencies = {metric for _, metric, _ in store.histograms()}
    assert {"latency", "read_latency", "write_latency", "fsync_latency"} <= latencies
    versions = {key for scope, key in facts(run) if scope == "userland packages"}
    assert {"postgresql-15", "fio", "bonnie++"} <= versions
