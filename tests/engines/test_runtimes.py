"""Which OCI runtimes an engine has, what is read back of the one in use, and what is refused before a run."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge.engines import runtimes
from weighbridge.engines.runtimes import (
    UNKNOWN,
    ChosenRuntime,
    RegisteredRuntime,
    RuntimeVersion,
    Supervisor,
    version_in,
)
from weighbridge.errors import Unavailable
from weighbridge.model.command import Command, Completed

DATA = Path(__file__).parent / "data"
CRUN = RegisteredRuntime("crun", "/usr/bin/crun")
CRUN_1 = ChosenRuntime("crun", CRUN, RuntimeVersion("crun", "1.8.1"))
SHIM = "containerd-shim-runc-v2"


def info_of(name: str) -> dict[str, Any]:
    return dict(json.loads((DATA / name).read_text()))


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, Any] | None], list[bool]]:
    """Have an engine answer with this info, or none (None); return which clients were closed."""

    def answer(info: Mapping[str, Any] | None) -> list[bool]:
        closed: list[bool] = []
        client = SimpleNamespace(info=lambda: info, close=lambda: closed.append(True))
        monkeypatch.setattr(runtimes, "client_from_environment", lambda: None if info is None else client)
        return closed

    return answer


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The programs in PATH, by name, and that none of them prints a version."""
    programs: dict[str, str] = {}
    faults = runtimes.faults

    def of_other_programs(program: Path) -> Iterator[tuple[str, str]]:
        yield from () if str(program) in programs.values() else faults(program)

    monkeypatch.setattr(runtimes, "faults", of_other_programs)
    monkeypatch.setattr(runtimes, "which", lambda name: programs.get(Path(name).name))
    monkeypatch.setattr(runtimes, "output", lambda words, **_: None)
    monkeypatch.setattr(runtimes, "install_here", lambda names, other: other.get(names[0], f"install {names[0]}"))
    return programs


# -- the engine's table -----------------------------------------------------------------------------


def test_the_table_of_docker_20():
    """As the engine answered, with paths of an ordinary installation."""
    info = info_of("docker-20-info-runtimes.json")
    table = runtimes.registered(info)
    assert {name: each.path for name, each in table.items()} == {
        "crun": "/usr/bin/crun", "runc": "runc", "runsc": "/usr/local/bin/runsc", "youki": "/usr/local/bin/youki",
    }  # fmt: skip
    assert runtimes.in_engine(info, "/usr/bin/crun") == table["crun"]
    assert runtimes.in_engine(info, "io.containerd.kata.v2") is None, "it knows no shims by name"


def test_a_runtime_with_arguments_is_not_the_program_that_a_study_names():
    info = {"Runtimes": {"slow": {"path": "/usr/bin/crun", "runtimeArgs": ["--debug"]}}}
    entry = runtimes.in_engine(info, "slow")
    assert entry is not None and entry.arguments == ("--debug",)
    assert runtimes.in_engine(info, "/usr/bin/crun") is None


def test_the_table_of_a_newer_docker():
    """As its API describes it: shims by type, and what each runtime can do."""
    stock = {"path": "runc", "status": {"org.opencontainers.runtime-spec.features": "{}"}}
    table = {"io.containerd.runc.v2": stock, "runc": stock, "kata": {"runtimeType": "io.containerd.kata.v2"}}
    info = {"ServerVersion": "29.6.1", "Runtimes": table}
    assert [*runtimes.registered(info)] == ["runc", "kata"]
    assert runtimes.in_engine(info, "kata") == RegisteredRuntime("kata")
    assert runtimes.in_engine(info, "io.containerd.kata.v2") == RegisteredRuntime("io.containerd.kata.v2")
    assert runtimes.in_engine(info, "youki") is None


@pytest.mark.parametrize(
    "info",
    [
        {}, {"Runtimes": None}, {"Runtimes": []}, {"Runtimes": "runc"}, {"Runtimes": {"crun": None}},
        {"Runtimes": {"crun": {"path": None, "runtimeArgs": None}}}, {"Runtimes": {"crun": {"runtimeArgs": "x"}}},
        {"Runtimes": {"crun": ["/usr/bin/crun"]}, "ServerVersion": None},
    ],
)  # fmt: skip
def test_an_incomplete_answer_gives_no_path(info: Mapping[str, Any]):
    assert all(not each.path for each in runtimes.registered(info).values())
    assert runtimes.in_engine(info, "/usr/bin/crun") is None
    assert runtimes.in_engine(info, "io.containerd.kata.v2") is None


@pytest.mark.parametrize(
    ("file", "version"),
    [
        ("runc-1.1.5", RuntimeVersion("runc", "1.1.5+ds1")), ("crun-1.8.1", RuntimeVersion("crun", "1.8.1")),
        ("youki-0.7.0", RuntimeVersion("youki", "0.7.0")),
    ],
)  # fmt: skip
def test_a_real_version(file: str, version: RuntimeVersion):
    assert version_in((DATA / f"{file}-version.txt").read_text()) == version


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("runc version (devel)\ncommit: 5fd4c4d", RuntimeVersion("runc", "")),
        ("kata-runtime  : 3.2.0\n   commit   : ab12", RuntimeVersion("kata-runtime", "3.2.0")),
        ("sysbox-runc\n\tedition: \tCE\n\tversion: \t0.6.4", RuntimeVersion("sysbox-runc", "0.6.4")),
        ("crun vers", RuntimeVersion("crun", "")), ("", UNKNOWN), ("Usage: x", UNKNOWN),
    ],
)  # fmt: skip
def test_a_version(printed: str, version: RuntimeVersion):
    assert version_in(printed) == version


# -- before a run -----------------------------------------------------------------------------------


def test_an_engine_of_ours_is_told_of_the_installed_ones_and_of_those_of_the_study(installed: dict[str, str]):
    installed |= {"crun": "/usr/bin/crun", "reboot": "/sbin/reboot"}
    assert runtimes.registration() == {"crun": {"path": "/usr/bin/crun"}}
    by_path = runtimes.registration(["/opt/a/youki", "/opt/b/youki"])
    assert len(by_path) == 3, "two of one name are told apart"
    assert runtimes.in_engine({"Runtimes": by_path}, "/opt/b/youki") is not None
    assert runtimes.registration(["/opt/a/youki"], lambda path: path == "/usr/bin/crun") == runtimes.registration()


@pytest.mark.parametrize(
    "wanted", ["crun", "youki", "frob", "/nonexistent/crun", "/etc/passwd", "io.containerd.kata.v2"]
)
def test_what_no_engine_of_ours_could_have_is_refused(
    installed: dict[str, str], answering: Callable[[Any], list[bool]], wanted: str
):
    answering(None)
    assert runtimes.of_running_engine(wanted) is None
    state = runtimes.of_engine_to_start(wanted)
    assert not state.ready and state.remedy
    assert_sentence(f"{state.detail}: {state.remedy}")


def test_a_program_of_the_path_is_no_runtime(installed: dict[str, str]):
    installed["reboot"] = "/sbin/reboot"
    assert not runtimes.of_engine_to_start("reboot").ready


def test_a_shim_is_a_program_of_the_path(installed: dict[str, str]):
    installed["containerd-shim-kata-v2"] = "/opt/kata/bin/containerd-shim-kata-v2"
    assert runtimes.of_engine_to_start("io.containerd.kata.v2").ready
    assert not runtimes.of_engine_to_start("io.containerd.").ready


def test_a_file_that_others_can_change_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "crun"
    program.write_text("")
    program.chmod(0o757)
    state = runtimes.of_engine_to_start(str(program))
    assert not state.ready and "writable by others" in state.detail
    monkeypatch.setattr(runtimes, "which", {"crun": str(program)}.get)
    assert runtimes.of_engine_to_start("crun") == state and runtimes.registration() == {}


@pytest.mark.parametrize(("wanted", "ready"), [("crun", True), ("krun", False), ("/opt/youki", False)])
def test_the_running_engine_must_have_registered_it(answering: Callable[[Any], list[bool]], wanted: str, ready: bool):
    closed = answering(info_of("docker-20-info-runtimes.json"))
    state = runtimes.of_running_engine(wanted)
    assert state is not None and state.ready is ready and closed == [True]
    if not ready:
        assert_sentence(f"{state.detail}: {state.remedy}")


def test_a_runtime_with_virtual_machines_needs_kvm(tmp_path: Path):
    device = tmp_path / "kvm"
    refusal = runtimes.lacking_hardware("io.containerd.kata.v2", device)
    assert refusal is not None
    assert_sentence(f"{refusal.detail}: {refusal.remedy}".replace(str(tmp_path), "TMP"))
    assert runtimes.lacking_hardware("crun", device) is None
    device.touch()
    assert runtimes.lacking_hardware("/opt/kata/bin/kata-runtime", device) is None
    assert [layer.name for layer in runtimes.layers("/opt/kata/bin/kata-runtime")] == [
        "virtual machine of kata-runtime"
    ]
    assert runtimes.unverified("krun") and not runtimes.unverified("crun") and runtimes.layers("crun") == ()


def test_doctor_lists_each_runtime_once(
    installed: dict[str, str], answering: Callable[[Any], list[bool]], monkeypatch: pytest.MonkeyPatch
):
    installed |= {"crun": "/usr/bin/crun", "runc": "/usr/sbin/runc"}
    monkeypatch.setattr(runtimes, "output", lambda words, **_: f"{Path(words[0]).name} version 1.2\n")
    answering(None)
    assert runtimes.known_here() == "crun 1.2, runc 1.2"
    answering({"Runtimes": {"a": {"path": "runc"}, "runc": {"path": "runc"}, "kata": {"runtimeType": "x"}}})
    assert runtimes.known_here() == "kata, runc 1.2"


# -- in a run ---------------------------------------------------------------------------------------


def chosen(
    table: Mapping[str, Any],
    wanted: str,
    printed: str = "",
    *,
    private: bool = False,
    path: Sequence[str] = (),
) -> tuple[ChosenRuntime, list[tuple[str, ...]]]:
    """Return the runtime of an engine with this table, and the commands on its host, which print this."""
    asked: list[tuple[str, ...]] = []

    def run(command: Command) -> Completed:
        asked.append(command.argv)
        return Completed(command.argv, 0, printed.encode(), b"", 0.01)

    client, host = SimpleNamespace(info=lambda: {"Runtimes": table}), SimpleNamespace(name="a", run=run)
    runtime = runtimes.chosen(client, host, wanted, private=private, environment=path)  # type: ignore[arg-type]
    return runtime, asked


def test_the_version_is_that_of_the_engine_s_program():
    runtime, asked = chosen({"crun": {"path": "crun"}}, "crun", "crun version 1.8.1", path=("env", "PATH=/opt"))
    assert runtime == ChosenRuntime("crun", RegisteredRuntime("crun", "crun"), CRUN_1.version)
    assert asked == [("env", "PATH=/opt", "crun", "--version")]


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("wanted", ["crun", "/opt/crun"])
def test_an_engine_that_does_not_have_it(private: bool, wanted: str):
    with raises_sentence(Unavailable):
        chosen({"runc": {"path": "runc"}}, wanted, private=private)


@pytest.mark.parametrize(("path", "printed"), [("/opt/runsc", ""), ("/opt/sandbox", "runsc version VERSION_MISSING")])
def test_gvisor_by_another_name_is_refused_because_it_could_take_the_host_s_addresses(path: str, printed: str):
    with raises_sentence(Unavailable):
        chosen({"fast": {"path": path}}, "fast", printed)


def processes(**files: bytes) -> Callable[[str], bytes]:
    """Return a reader of /proc, in which the first process 7 has the parent 6."""
    known = {"/proc/7/status": b"Name:\tx\nPPid:\t6\n", **{f"/proc/6/{name}": data for name, data in files.items()}}

    def read(path: str) -> bytes:
        if path not in known:
            raise PermissionError(path)
        return known[path]

    return read


def test_the_parent_of_the_first_process_tells_the_runtime():
    shim = b"/usr/bin/containerd-shim-runc-v2\0-namespace\0moby\0-id\0ab\0"
    read = processes(cmdline=shim, **{"cwd/runtime": b"/usr/bin/crun"})
    assert runtimes.supervisor_of(read, 7) == Supervisor(SHIM, "/usr/bin/crun")
    assert runtimes.supervisor_of(processes(cmdline=shim), 7) == Supervisor(SHIM), "a user cannot read the rest"
    conmon = b"/usr/bin/conmon\0--api-version\x001\0-r\0/usr/bin/crun\0-b\0/x\0"
    assert runtimes.supervisor_of(processes(cmdline=conmon), 7) == Supervisor("conmon", "/usr/bin/crun")
    assert runtimes.supervisor_of(processes(cmdline=b"/usr/bin/conmon\0-r"), 7) == Supervisor("conmon")
    assert runtimes.supervisor_of(processes(), 7) == Supervisor()
    assert runtimes.supervisor_of(lambda path: b"", 7) == Supervisor()


def test_the_facts_name_the_runtime_its_program_and_its_supervisor():
    facts = runtimes.verified_facts(CRUN_1, "crun", Supervisor(SHIM, "/usr/bin/crun"))
    assert facts == {"runtime": "crun 1.8.1", "runtime program": "/usr/bin/crun", "runtime supervisor": SHIM}
    assert runtimes.verified_facts(CRUN_1, "crun", Supervisor()) == {"runtime": "crun 1.8.1"}
    unknown = ChosenRuntime("kata", RegisteredRuntime("kata"), UNKNOWN)
    assert runtimes.verified_facts(unknown, "kata", Supervisor("containerd-shim-kata-v2"))["runtime"] == "kata"
    with_arguments = RegisteredRuntime("crun", "/usr/bin/crun", ("--debug",))
    script = Supervisor(SHIM, "/var/lib/docker/runtimes/script")
    assert runtimes.verified_facts(ChosenRuntime("crun", with_arguments, CRUN_1.version), "crun", script)


RUNC = RuntimeVersion("runc", "1.1.5")


@pytest.mark.parametrize(
    ("runtime", "reported", "supervisor"),
    [
        (CRUN_1, "", Supervisor()),
        (CRUN_1, "runc", Supervisor(SHIM, "/usr/bin/crun")),
        (CRUN_1, "crun", Supervisor(SHIM, "/usr/sbin/runc")),
        (ChosenRuntime("crun", CRUN, RUNC), "crun", Supervisor(SHIM, "/usr/bin/crun")),
    ],
)
def test_another_runtime_than_the_study_s_is_an_error(runtime: ChosenRuntime, reported: str, supervisor: Supervisor):
    with raises_sentence(Unavailable):
        runtimes.verified_facts(runtime, reported, supervisor)
