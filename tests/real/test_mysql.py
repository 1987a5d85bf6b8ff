"""A real database server: its data is made once and copied, its limit is a result, a full disk is one sentence."""

import re
from pathlib import Path

import pytest

from weighbridge.hosts.local import LocalHost
from weighbridge.linux.process import run as run_command
from weighbridge.model.command import Command
from weighbridge.model.host import Limits
from weighbridge.model.site import SiteRequest, SiteStorage
from weighbridge.model.userland import Userland
from weighbridge.model.workload import Endpoint
from weighbridge.registry import environments
from weighbridge.storage import directory
from weighbridge.workloads.mysql_oltp import PLUGIN

from .conftest import open_run
from .machine import Machine
from .weighing import NATIVE, facts, trials, weighbridge, write_study

DIRECTORY = SiteStorage("directory", lambda at: directory.PLUGIN.open(directory.StorageDirectoryOptions(), at))

PUBLISHED = "gateway: {kind: docker, network: bridge, publish: true}"
SMALL = "tables: 2, table_size: 1000, duration: 1s, warm_up: 0s"
BEGINNING = re.compile(rb"InnoDB: log sequence number (\d+)")


def test_levels_below_and_above_the_limit_on_restored_data(machine: Machine, tmp_path: Path):
    """Where InnoDB's log begins tells which data a server started on: any write moves it."""
    workload = f"db: {{kind: mysql-oltp, {SMALL}, threads: [2, 9, 20], max_connections: 10}}"
    study = write_study(tmp_path, environments=(NATIVE, PUBLISHED), workloads=(workload,), blocks=1, resources="{}")
    run = tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    rows = trials(run)
    assert len(rows) == 6, "a result is not repeated"
    above = [row for row in rows if "20" in row["level"]]
    assert {row["outcome"] for row in above} == {"broke"}
    assert all(row["message"].startswith("too many connections at 20 threads (error 1040") for row in above)
    assert {row["outcome"] for row in rows if row not in above} == {"ok"}
    for environment in ("native", "gateway"):
        begun = [BEGINNING.search(_said_by_server(run, row)) for row in rows if row["environment"] == environment]
        assert len(begun) == 3 and all(begun)
        assert len({found[1] for found in begun if found}) == 1, "each trial begins with the same data"
    versions = {key: value for (scope, key), value in facts(run).items() if scope == "userland packages"}
    assert versions["mariadb-server-core"].startswith("1:10.11.")


def _said_by_server(run: Path, row: dict[str, object]) -> bytes:
    (file,) = (run / "raw").glob(f"*{row['id']:06}*server*.stderr")
    return file.read_bytes()


def test_a_copy_is_on_the_disk_by_one_sync_of_its_file_system(tmp_path: Path):
    """File by file it took as long as a short trial."""
    template, copy, synced = tmp_path / "template", tmp_path / "copy", tmp_path / "synced"
    (template / "sbtest").mkdir(parents=True)
    for number in range(3):
        (template / "sbtest" / f"{number}.ibd").write_bytes(bytes([number]))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sync").write_text(f'#!/bin/sh\nls "$2/sbtest" | tr "\\n" " " >>{synced}\necho "$@" >>{synced}\n')
    (tmp_path / "bin/sync").chmod(0o755)
    copy.mkdir()
    (copy / "left by a trial").touch()
    shell, *arguments = PLUGIN.restore(PLUGIN.options(), Endpoint("127.0.0.1", "127.0.0.1", 15000)).argv[:-2]
    argv = ("env", f"PATH={tmp_path / 'bin'}:/usr/bin:/bin", shell, *arguments, str(template), str(copy))
    assert run_command(Command(argv, deadline_s=10)).returncode == 0
    assert synced.read_text().splitlines() == [f"0.ibd 1.ibd 2.ibd --file-system {copy}"]
    assert [path.name for path in copy.iterdir()] == ["sbtest"]


def test_a_full_disk(machine: Machine, userland: Userland):
    """No data are made, and none are left: the next trial would try again."""
    with open_run("f011d15c0001") as run:
        request = SiteRequest(run, LocalHost(run.id), "full", "server", userland, Limits(), storage=DIRECTORY)
        with environments()["native"].open(environments()["native"].options(), request) as site:
            small = ("mount", "-t", "tmpfs", "-o", "size=4m", "weighbridge", str(userland.root / "srv"))
            assert run_command(Command(("nsenter", "--target", str(site.pid), "--mount", *small))).returncode == 0
            done = site.run(PLUGIN.prepare(PLUGIN.options(tables=1, table_size=100), Endpoint("127.0.0.1", "", 1)))
            assert done.returncode != 0
            assert "No space left" in done.last_words
            assert site.run(Command(("ls", "/srv"))).text == ""


@pytest.mark.long  # builds a userland of Debian sid
@pytest.mark.promise("MySQL itself is measured, and its limit of connections is a result")
def test_mysql_itself(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(Path.home() / ".cache/weighbridge"))
    workload = f"db: {{kind: mysql-oltp, server: mysql, {SMALL}, threads: [2, 20], max_connections: 10}}"
    study = write_study(tmp_path, environments=(NATIVE, PUBLISHED), workloads=(workload,), blocks=1, resources="{}")
    done = weighbridge("run", study, "--out", tmp_path / "run", "--yes")
    assert done.code == 0, done
    assert sorted(row["outcome"] for row in trials(tmp_path / "run")) == ["broke", "broke", "ok", "ok"]
    versions = {key: value for (scope, key), value in facts(tmp_path / "run").items() if scope == "userland packages"}
    assert versions["mysql-server-core"].startswith("9.")
