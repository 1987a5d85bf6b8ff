"""Every new plug-in is one file: samples of each kind are found, held and used, no other file touched."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from typer.testing import CliRunner

from runner.world import Act, FakeSite, World
from sentences import raises_sentence
from weighbridge import registry
from weighbridge.analysis.remarks.hypervisors import unverified
from weighbridge.cli import plan
from weighbridge.cli.app import app
from weighbridge.cli.doctor import examine
from weighbridge.errors import StudyError, Unavailable
from weighbridge.linux import process
from weighbridge.model.cleanup import Leftover, OrphanedRun, discard
from weighbridge.model.command import Completed
from weighbridge.model.host import Capabilities, RunContext
from weighbridge.model.measurement import Outcome
from weighbridge.model.names import RunId
from weighbridge.model.study import Study
from weighbridge.model.trial import Trial
from weighbridge.report.text.remarks import remark_text
from weighbridge.runner import clean
from weighbridge.runner import planned as plans
from weighbridge.runner.notes import durabilities, unverified_parts
from weighbridge.runner.run import loads_of
from weighbridge.runner.sites import open_hosts
from weighbridge.runner.stage import Stage
from weighbridge.runner.storage import site_storage
from weighbridge.runner.trial import run_trial
from weighbridge.study.loader import check
from weighbridge.study.schema import json_schema
from weighbridge.study.source import parse

from . import held, held_adapter, held_workload

SAMPLES = Path(__file__).parent / "samples"
PACKAGES = {
    "adapters": "weighbridge.adapters",
    "environments": "weighbridge.environments",
    "hosts": "weighbridge.hosts.kinds",
    "storage": "weighbridge.storage",
    "userland": "weighbridge.userland.sources",
    "workloads": "weighbridge.workloads",
}
STUDY = """\
study: of-samples
question: Does a new plug-in need more than its file?
hosts: {here: {kind: nice, level: 5}}
userland: {kind: archive, file: /nonexistent.tar}
baseline: native
environments:
  native: {kind: native, storage: {kind: memory, size: 64MiB}}
  disk: {kind: native}
  alone: {kind: unshared, storage: memory}
  guest: {kind: emulator, hardware: true}
inside: [server, client]
workloads:
  redis: {kind: redis-benchmark, appendonly: always}
  alone: {kind: script, script: "print 7"}
  own: {kind: command, run: "tally {file}", parameters: {file: [a, b]}, adapter: {kind: tally, of: lines}}
  served: {kind: script, server: "own-server --listen HOST:PORT", users: [1, 10]}
repetitions: {blocks: 1}
"""


@pytest.fixture(autouse=True)
def _samples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Their folders are searched too, as if each sample were in its package."""
    known: list[Any] = [
        registry.adapters, registry.environments, registry.hosts, registry.storage, registry.userlands,
        registry.workloads,
    ]  # fmt: skip
    before = {*sys.modules}
    for folder, name in PACKAGES.items():
        package = import_module(name)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(SAMPLES / folder)])
    for find in known:
        find.cache_clear()
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")

    def refuse(*_: object, **__: object) -> None:
        raise Unavailable("no program can be started here")

    monkeypatch.setattr(process, "Process", refuse)
    yield
    for find in known:
        find.cache_clear()
    for name in {*sys.modules} - before:
        if name.startswith("weighbridge.") and (SAMPLES in Path(str(sys.modules[name].__file__)).parents):
            del sys.modules[name]


def study() -> Study:
    return check(parse(STUDY, "of-samples.yaml"))


def test_they_are_found_and_keep_the_contract(tmp_path: Path) -> None:
    every = held.every_plugin()
    kinds = ("unshared", "uts", "emulator")
    for name in (*(f"environment {kind}" for kind in kinds), "host nice", "storage memory", "workload script",
                 "adapter tally"):  # fmt: skip
        held.describes_itself(every[name])
        held.names_its_programs(every[name])
        held.has_strict_options(every[name], {})
    for kind in kinds:
        held.holds_as_environment(registry.environments()[kind], {})
        held.says_what_it_leaves(registry.environments()[kind], tmp_path)
    held.holds_as_storage(registry.storage()["memory"], {}, tmp_path)
    held.holds_as_source(registry.userlands()["archive"], {"file": "/nonexistent.tar"}, tmp_path)
    held.holds_as_host(registry.hosts()["nice"], {}, tmp_path)
    for options in ({}, {"of": "Lines read"}):
        held_adapter.holds_as_adapter(registry.adapters()["tally"], options)
    for options in ({}, {"server": "own-server --listen HOST:PORT"}):
        held_workload.holds_as_workload(registry.workloads()["script"], options)


def test_a_study_and_its_schema_know_them() -> None:
    data: Any = YAML(typ="safe", pure=True).load(STUDY)
    assert [error.message for error in Draft202012Validator(json_schema()).iter_errors(data)] == []
    arms = {arm.name: arm for arm in study().arms}
    assert arms["native"].options.storage.size == 64 * 2**20
    assert arms["alone"].options.storage.size == 2**28
    assert study().file.hosts["here"].traits.this_machine


def test_plan_and_doctor_know_them() -> None:
    assert plan.hosts_of(study())["hosts"] == {"here": {"kind": "nice", "level": 5}}
    found = examine()
    assert {"nice", "testbed"} <= {row["name"] for row in found["hosts"]}
    assert "memory" in {row["name"] for row in found["storage"]}
    assert "unshared" in {row["name"] for row in found["environments"]}


def test_what_is_unverified_on_real_hardware_is_said_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.hosts()["nice"], "unverified", lambda options=None: "nobody was nice")
    why = "no processor with such support was there"
    rows = {row["name"]: row["unverified"] for row in (*examine()["environments"], *examine()["hosts"])}
    assert (rows["emulator"], rows["emulator (hardware)"], rows["native"], rows["nice"]) == (
        "", why, "", "nobody was nice",
    )  # fmt: skip
    shown = " ".join(CliRunner().invoke(app, ["doctor", "--all"]).stdout.split())
    section = shown.partition("untested on real hardware ")[2]
    assert f"emulator (hardware): {why}" in section and "nice: nobody was nice" in section

    monkeypatch.setattr("weighbridge.runner.preflight.userland_problem", lambda *_, **__: None)
    planned = plan.describe(plans.plan(study()))
    assert [arm["name"] for arm in planned["environments"] if arm["unverified"] == why] == ["guest"]
    assert f"guest is untested on real hardware: {why}" in planned["warnings"]
    assert "host here is untested on real hardware: nobody was nice" in planned["warnings"]

    assert unverified_parts(study()) == {"guest": why, "host here": "nobody was nice"}
    facts = [("unverified", what, text, 0.0) for what, text in unverified_parts(study()).items()]
    told = [remark_text(each) for each in unverified(facts * 2, ["native", "guest"])]
    assert told == [
        f"guest: untested on real hardware ({why})", "host here: untested on real hardware (nobody was nice)",
    ]  # fmt: skip


def test_clean_finds_and_removes_what_a_new_environment_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path))
    run, folder = RunId("5a3b1e000001"), tmp_path / "snapshots/5a3b1e000001"
    folder.mkdir(parents=True)
    assert clean.find(run).left == (Leftover(run, "snapshot", str(folder)),)
    discard(
        OrphanedRun(run, tmp_path / "states" / run, tmp_path / "engines" / run),
        registry.environments()["emulator"].cleanup,
    )
    assert clean.find(run).left == ()


def test_doctor_tells_how_to_get_their_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    absent: Callable[..., None] = lambda *_, **__: None  # noqa: E731
    monkeypatch.setattr("weighbridge.linux.process.shutil.which", absent)
    (row,) = [row for row in examine()["storage"] if row["name"] == "memory"]
    assert (row["ready"], row["detail"], row["remedy"]) == (False, "mount is not installed", "apt-get install mount")


def test_data_in_memory_is_not_durable_whatever_the_program_does() -> None:
    found = durabilities(study())
    assert found["disk/redis"] == "synchronous"
    assert found["native/redis"] == found["alone/redis"] == "none"


def test_sites_get_the_storage_that_was_named(tmp_path: Path) -> None:
    native = registry.environments()["native"]
    by_name = {arm.name: arm.options for arm in study().arms}
    kinds = [
        getattr(site_storage(native, by_name[name], study(), "server", {}), "kind", "") for name in ("native", "disk")
    ]
    assert kinds == ["memory", "directory"]
    assert site_storage(native, by_name["disk"], study(), "client", {}) is None


def test_the_host_is_opened(tmp_path: Path) -> None:
    with ExitStack() as stack:
        (host,) = open_hosts(study(), RunContext(RunId("0123456789ab"), tmp_path, tmp_path, stack)).values()
        assert (host.name, host.capabilities) == ("here", Capabilities(guest_disk=host.program))
        assert {"mnt", "net"} <= {*host.namespaces()}


def test_a_workload_has_the_roles_that_its_options_ask_for() -> None:
    cells = {cell.label: cell for cell in study().cells}
    assert cells["alone"].client == ""
    assert [cells[f"served (users={users})"].client for users in (1, 10)] == ["here", "here"]
    assert loads_of(study()) == {"redis": "clients", "served": "users"}
    own = STUDY.replace("disk: {kind: native}", "disk: {kind: native, workloads: {served: {server: null}}}")
    with raises_sentence(StudyError):
        check(parse(own, "of-samples.yaml"))


def test_a_command_s_output_is_read_by_the_adapter_that_is_named() -> None:
    cells = {cell.label: cell for cell in study().cells}
    for file in ("a", "b"):
        cell = cells[f"own (file={file})"]
        workload = registry.workloads()["command"]
        assert workload.command("solo", cell.options, held_workload.AT).argv == ("tally", file)
        assert [metric.name for metric in workload.metrics(cell.options)][:2] == ["lines", "time"]
        done = Completed(("tally",), 0, b"words 30\nlines 4\n", b"", 1.5)
        read = [each.value for each in workload.parse(cell.options, {"solo": done}).measurements]
        assert read == [4.0, 1.5]


def test_each_role_gets_its_files_before_anything_starts() -> None:
    world = World(act=lambda _, command: Act(stdout=b"7", hangs=bool(command.listens)))
    for cell in study().cells:
        if cell.kind == "script":
            workload = registry.workloads()["script"]
            sites = {role: FakeSite(world, role, "one", role) for role in workload.roles(cell.options)}
            stage = Stage(sites, dict.fromkeys(sites, held_workload.AT))
            record = run_trial(Trial(1, 0, cell.workload, cell.level, "one"), workload, cell.options, stage)
            assert (record.outcome, record.measurements[0].value) == (Outcome.OK, 7.0)
    assert {site for site, _ in world.files} == {"solo", "client"}
    assert [argv[0] for _, argv, _ in world.started] == ["perl", "own-server", "perl", "own-server", "perl"]
    assert world.started[-2][1] == ("own-server", "--listen", f"{held_workload.AT.listen}:{held_workload.AT.port}")


def test_what_a_plug_in_lacks_is_told_with_its_name() -> None:
    unshare = type(registry.environments()["unshared"])
    nameless = type("Nameless", (unshare,), {})()
    try:
        summary = unshare.summary
        del unshare.summary
        with raises_sentence(AssertionError):
            held.describes_itself(nameless)
    finally:
        unshare.summary = summary
