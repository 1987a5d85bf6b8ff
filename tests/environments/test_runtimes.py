"""The option ``runtime`` of Docker and Podman: which values it takes, what is asked of the user, and what uses it."""

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.engines import podman as engine
from weighbridge.engines import runtimes
from weighbridge.engines.podman import Podman
from weighbridge.engines.runtimes import RuntimeVersion
from weighbridge.engines.settings import daemon_file
from weighbridge.environments import docker
from weighbridge.environments.podman import programs
from weighbridge.environments.podman.site import runtime_facts
from weighbridge.errors import Unavailable
from weighbridge.linux import cgroup_files
from weighbridge.model.by_hand import ByHandRequest
from weighbridge.model.environment import Needs
from weighbridge.model.facts import CONFINEMENT
from weighbridge.model.once import Once
from weighbridge.model.options import External
from weighbridge.model.plugin import Readiness
from weighbridge.model.userland import ProcessDefaults, Userland
from weighbridge.runner.userlands import Userlands, measured_programs
from weighbridge.study.external import external_resources, names_external, runtimes_by_path
from weighbridge.study.loader import check
from weighbridge.study.source import parse

DOCKER, PODMAN = (registry.environments()[kind] for kind in ("docker", "podman"))
HERE = Needs(network=True)
STUDY = """\
study: engines
question: Which one starts faster?
baseline: one
environments:
  one: {{kind: docker, runtime: crun}}
  two: {{kind: {kind}, runtime: {path}}}
workloads:
  boot: {{kind: boot}}
repetitions: {{rounds: 6}}
"""


@pytest.mark.parametrize("kind", ["docker", "podman"])
@pytest.mark.parametrize(
    "runtime", ["crun", "io.containerd.kata.v2", "/usr/bin/crun", "/root/.cargo/bin/youki", "/opt/kata-3.2/bin/a+b"]
)
def test_a_name_or_an_absolute_path(kind: str, runtime: str):
    plugin = registry.environments()[kind]
    assert plugin.options.model_validate({"runtime": runtime}).runtime == runtime


@pytest.mark.parametrize("kind", ["docker", "podman"])
@pytest.mark.parametrize(
    "runtime",
    [
        "", "-crun", "--root=/x", "../crun", "bin/crun", ".", "..", "/", "/usr/../bin/x", "/usr/./x", "/usr/bin/",
        "/usr//bin/x", "/usr/-x", "/..x", "crun\n", "a b", "/opt/x;y", "/opt/x\0y", "a" * 101, "/" + "a" * 101, None,
    ],
)  # fmt: skip
def test_nothing_else(kind: str, runtime: object):
    with pytest.raises(ValidationError):
        registry.environments()[kind].options.model_validate({"runtime": runtime})


def test_the_refusal_says_what_is_allowed():
    with raises_sentence(ValidationError):
        DOCKER.options.model_validate({"runtime": "--root=/x"})


# -- consent ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_a_path_is_shown_before_it_is_used_and_its_file_is_noted(kind: str, tmp_path: Path):
    program = tmp_path / "crun"
    program.write_bytes(b"a runtime")
    study = check(parse(STUDY.format(kind=kind, path=program), "own.yaml"))
    [brought] = external_resources(study)
    assert (brought.kind, brought.place, brought.value) == (
        External.RUNTIME, "environments.two.runtime", str(program),
    )  # fmt: skip
    assert External.RUNTIME.is_path and runtimes_by_path(study) == (str(program),)
    assert [arm.name for arm in study.arms if names_external(arm.options)] == ["two"]
    userlands = Userlands(Userland("0" * 64, tmp_path, None, {}, ProcessDefaults()))
    assert measured_programs(study, userlands) == {str(program): hashlib.sha256(b"a runtime").hexdigest()}


def test_engines_of_ours_know_what_the_study_names():
    assert f'"path": "{__file__}"' in daemon_file(runtimes_by_path=[__file__])


# -- Docker -----------------------------------------------------------------------------------------


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> dict[str, Readiness | None]:
    """The readiness of a runtime in the engine that answers (None: none answers), and in an engine to start."""
    known: dict[str, Readiness | None] = {"running": None, "to start": Readiness(True)}
    monkeypatch.setattr(docker, "readiness", lambda: Readiness(True, "an engine"))
    monkeypatch.setattr(runtimes, "of_running_engine", lambda _: known["running"])
    monkeypatch.setattr(runtimes, "of_engine_to_start", lambda _: known["to start"])
    return known


LACKS = Readiness(False, "it lacks it", "register it")
ABSENT = Readiness(False, "it is not installed", "install it")


@pytest.mark.parametrize(
    ("running", "to_start", "anywhere", "here"),
    [
        (None, Readiness(True), Readiness(True, "an engine"), None),
        (None, ABSENT, ABSENT, ABSENT),
        (Readiness(True), ABSENT, Readiness(True, "an engine"), None),
        (LACKS, Readiness(True), Readiness(True, "it lacks it", caveat="testbed hosts only"), LACKS),
        (LACKS, ABSENT, LACKS, LACKS),
    ],
)
def test_the_engine_that_answers_decides_or_the_machine(
    states: dict[str, Readiness | None], running: Readiness | None, to_start: Readiness, anywhere: Readiness,
    here: Readiness | None,
):  # fmt: skip
    states |= {"running": running, "to start": to_start}
    options = DOCKER.options(runtime="crun")
    assert DOCKER.ready(options) == anywhere
    assert docker.unmet(options, HERE) == here


def test_without_kvm_no_virtual_machine_is_started(states: dict[str, Readiness | None], monkeypatch: Any):
    monkeypatch.setattr(runtimes, "lacking_hardware", lambda _: ABSENT)
    assert DOCKER.ready(DOCKER.options(runtime="io.containerd.kata.v2")) == ABSENT


def test_the_kit_writes_it():
    for network, publish in (("none", False), ("bridge", False), ("bridge", True)):
        options = DOCKER.options(runtime="/opt/youki/bin/youki", network=network, publish=publish)
        made = DOCKER.by_hand(options, ByHandRequest(1, network=network != "none"))
        assert made.services["server"]["runtime"] == "youki"
        assert_sentence("\n".join(made.first))
    usual = DOCKER.by_hand(DOCKER.options(), ByHandRequest(1))
    assert "runtime" not in usual.services["server"] and usual.first == ()


@pytest.mark.parametrize("plugin", [DOCKER, PODMAN], ids=["docker", "podman"])
def test_one_with_a_kernel_of_its_own_has_another_confinement(plugin: Any):
    virtual, usual = plugin.options(runtime="kata"), plugin.options(runtime="crun")
    assert plugin.confinement(virtual) == dict.fromkeys(CONFINEMENT, "") != plugin.confinement(usual)
    assert (plugin.layer_durability(virtual), plugin.layer_durability(usual)) == ("unknown", "synchronous")
    assert plugin.unverified(virtual) and not plugin.unverified(usual) and not plugin.unverified()


INSPECT = json.loads((Path(__file__).parent / "data/docker-20-inspect-crun.json").read_text())


def container(runtime: str) -> Any:
    """A container as Docker 20 inspects one of crun's, with another runtime; "" leaves it out."""
    settings = {**INSPECT["HostConfig"], "Runtime": runtime}
    return SimpleNamespace(attrs={**INSPECT, "HostConfig": settings if runtime else {}})


def test_the_first_container_of_an_engine_tells_which_runtime_made_it():
    asked: list[str] = []

    def read(path: str) -> bytes:
        asked.append(path)
        raise PermissionError(path)

    of_run: Any = SimpleNamespace(
        client=SimpleNamespace(info=lambda: {"Runtimes": {"crun": {"path": ""}}}), runtimes=Once(), private=False,
        host=SimpleNamespace(name="here", read=read), settings=SimpleNamespace(program=("dockerd",)),
    )  # fmt: skip
    options = DOCKER.options(runtime="crun")
    for runtime in ("runc", ""):
        with raises_sentence(Unavailable):
            docker._runtime_facts(options, of_run, container(runtime))
    assert docker._runtime_facts(options, of_run, container("crun")) == {"runtime": "crun"}
    before = len(asked)
    assert docker._runtime_facts(options, of_run, container("crun")) == {"runtime": "crun"} and len(asked) == before
    assert docker._runtime_facts(DOCKER.options(), of_run, container("runc")) == {"runtime": "runc"}
    assert docker._runtime_name(options, of_run) == "crun" and docker._runtime_name(DOCKER.options(), of_run) is None


# -- Podman -----------------------------------------------------------------------------------------


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Podman:
    """Podman of this machine, where crun is installed, and version 1 of control groups is mounted."""
    monkeypatch.setattr(engine, "which", {"crun": "/usr/bin/crun"}.get)
    monkeypatch.setattr(engine.shutil, "which", {"runc": "/usr/sbin/runc"}.get)
    monkeypatch.setattr(cgroup_files, "version", lambda: 1)
    made = Podman.__new__(Podman)
    made.host, made.runtime, made.runtime_facts = SimpleNamespace(this_machine=True), "runc", Once()  # type: ignore[assignment]
    made._home = SimpleNamespace(argv=lambda *words: ("podman", *words))  # type: ignore[assignment]
    return made


def test_each_command_of_podman_has_the_runtime_of_its_container(here: Podman):
    runtime = {name: here.using(name).argv("start")[2] for name in ("default", "crun", "kata", "/opt/youki")}
    assert runtime == {"default": "runc", "crun": "/usr/bin/crun", "kata": "kata", "/opt/youki": "/opt/youki"}
    assert here.using("crun").runtime_facts is here.runtime_facts, "all are one podman"


@pytest.mark.parametrize(
    ("wanted", "reported", "conmon", "is_it"),
    [
        ("crun", "crun", b"/usr/bin/crun", True),
        ("default", "runc", b"/usr/sbin/runc", True),
        ("kata", "kata", b"/usr/bin/kata-runtime", True),
        ("crun", "crun", b"/usr/sbin/runc", False),
        ("crun", "runc", b"/usr/bin/crun", False),
    ],
)
def test_the_runtime_of_podman_is_read_back_from_conmon(
    here: Podman, monkeypatch: pytest.MonkeyPatch, wanted: str, reported: str, conmon: bytes, is_it: bool
):
    files = {"/proc/7/status": b"PPid:\t6\n", "/proc/6/cmdline": b"/usr/bin/conmon\0-r\0" + conmon + b"\0-b\0/x\0"}
    here.host = SimpleNamespace(this_machine=True, read=files.__getitem__)  # type: ignore[assignment]
    monkeypatch.setattr(runtimes, "version_here", lambda path: RuntimeVersion(Path(path).name, "1"))
    state = {"State": {"Pid": 7}, "OCIRuntime": reported}
    if not is_it:
        with raises_sentence(Unavailable):
            runtime_facts(here.using(wanted), wanted, state)
        return
    facts = runtime_facts(here.using(wanted), wanted, state)
    assert (facts["runtime program"], facts["runtime supervisor"]) == (conmon.decode(), "conmon")


def test_what_podman_cannot_use_is_told_before_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    groups = tmp_path / "unified"
    groups.mkdir()
    monkeypatch.setattr(cgroup_files, "BESIDE_VERSION_1", groups)
    monkeypatch.setattr(runtimes, "of_engine_to_start", lambda _: Readiness(True))
    assert programs._lacking_runtime("crun", root=False) is None
    (groups / "cgroup.controllers").touch()
    assert programs._lacking_runtime("crun", root=True) is None
    refusal = programs._lacking_runtime("/usr/bin/crun", root=False)
    assert refusal is not None and programs._lacking_runtime("youki", root=False) is None
    assert_sentence(f"{refusal.detail}: {refusal.remedy}")
    monkeypatch.setattr(runtimes, "of_engine_to_start", lambda _: ABSENT)
    monkeypatch.setattr(programs.os, "geteuid", lambda: 0)
    assert PODMAN.ready(PODMAN.options(runtime="youki")) == ABSENT
