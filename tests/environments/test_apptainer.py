"""What Apptainer is told, what its answers mean, and as whom it cannot run programs."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.environments import apptainer
from weighbridge.environments.apptainer import ApptainerOptions, command, exec_words, from_outside, version
from weighbridge.errors import Unavailable
from weighbridge.hosts.chroot import SitePaths
from weighbridge.linux import memory_folders
from weighbridge.linux.folders import mounted_at
from weighbridge.linux.memory_folders import MemoryFolders, memory_of
from weighbridge.model.cleanup import OrphanedRun, RunFolders
from weighbridge.model.command import Command, Completed, ProcessDefaults
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland

from .requested import RUN, requested

ENVIRONMENT: Any = registry.environments()["apptainer"]
PACKED = Userland("0" * 64, Path("/userland"), Path("/userland.tar"), {})
STATUS = "Name:\tcat\nCapInh:\t0000000000000000\nCapPrm:\t{}\nCapEff:\t0000000000000000\n"
ALL = "000001ffffffffff"
DATA = Path(__file__).parent / "data/apptainer"


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apptainer, "which", lambda program: f"/usr/bin/{program}")


@pytest.fixture(params=[0, 1000], ids=["root", "user"])
def user(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(os, "geteuid", lambda: request.param)
    return int(request.param)


def request_of(userland: Userland = PACKED) -> SiteRequest:
    return requested(userland)


def words_of(options: ApptainerOptions, **parts: str) -> list[str]:
    made = SitePaths(
        **{"launcher": "/cache/launcher", "root": "/userland", "data": "", "hosts": "", **parts}, group=None
    )
    return [*command(options, request_of(), made, "/own", "/image.sif", STATUS.format(ALL))]


def values(words: list[str], option: str) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words) if word == option]


def test_nothing_of_the_users_is_in_a_container():
    words = words_of(ApptainerOptions())
    assert values(words, "--no-mount") == ["home,tmp,cwd,hostfs,bind-paths"] and values(words, "--pwd") == ["/"]
    assert values(words, "--mount") == [
        "type=bind,source=/own/memory/tmp,destination=/tmp",
        "type=bind,source=/own/memory/run,destination=/run",
        "type=bind,source=/own/memory/shm,destination=/dev/shm",
        "type=bind,source=/cache/launcher,destination=/run/weighbridge-launcher,ro",
    ]
    assert words[-2:] == ["/image.sif", "/run/weighbridge-launcher"]
    assert values(words, "--env") == [f"WEIGHBRIDGE_RUN={RUN}"]
    assert not {"--userns", "--containall"} & {*words}


def test_contained_it_has_a_dev_of_its_own():
    words = words_of(ApptainerOptions(contain=True, user_namespace=True), data="/data", hosts="/state/hosts")
    assert {"--userns", "--containall"} <= {*words}
    assert [value.split("destination=")[1] for value in values(words, "--mount")] == [
        "/tmp", "/run", "/run/weighbridge-launcher,ro", "/srv", "/etc/hosts,ro",
    ]  # fmt: skip


def test_a_path_with_a_comma_is_quoted_as_csv():
    assert 'type=bind,"source=/a,""b""",destination=/srv' in values(
        words_of(ApptainerOptions(), data='/a,"b"'), "--mount"
    )


def test_the_users_settings_change_nothing(monkeypatch: pytest.MonkeyPatch):
    for name in ("APPTAINER_BIND", "SINGULARITY_BIND", "APPTAINERENV_X"):
        monkeypatch.setenv(name, "/scratch")
    words = words_of(ApptainerOptions())
    assert words[0] == "env" and {"APPTAINER_BIND", "SINGULARITY_BIND", "APPTAINERENV_X"} <= {*values(words, "-u")}
    assert {"APPTAINER_CONFIGDIR=/own/config", "APPTAINER_CACHEDIR=/own/cache", "APPTAINER_TMPDIR=/own/tmp"} <= {
        *words
    }


class Answering:
    """A host whose commands end as they are told."""

    def __init__(self, stdout: bytes) -> None:
        self._stdout = stdout

    def run(self, command: Command) -> Completed:
        return Completed(command.argv, 0, self._stdout, b"", 0.1)


@pytest.mark.parametrize(("printed", "told"), [((DATA / "version.txt").read_bytes(), "1.4.5"), (b"", "unknown")])
def test_its_version_is_a_fact(printed: bytes, told: str):
    host: Any = Answering(printed)
    assert version(host) == told


@pytest.mark.parametrize("name", ["mounts.txt", "mounts-contained.txt"])
def test_what_is_mounted_from_outside_is_a_fact(name: str):
    mounts = mounted_at((DATA / name).read_text())
    assert from_outside([each.at for each in mounts]) == ["/etc/group", "/etc/passwd", "/etc/resolv.conf"]
    assert "/home" in from_outside(["/", "/proc/sys", "/tmp", "/home"]) and "/data" in from_outside(["/data"])


def ending(*completed: Completed) -> Callable[[Command], Completed]:
    left = [*completed]
    return lambda command: replace(left.pop(0), argv=command.argv)


STARTED = Completed((), 0, b"", b"", 0.1)


def refused(name: str) -> Completed:
    return Completed((), 255, b"", (DATA / name).read_bytes(), 0.1)


def test_it_is_ready_where_a_container_was_made(user: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(apptainer, "run", ending(*[STARTED] * 3))
    monkeypatch.setattr(apptainer, "_FUSE", Path("/dev/null"))
    for options in (None, ApptainerOptions(), ApptainerOptions(contain=True)):
        state = ENVIRONMENT.ready(options)
        assert state.ready and not state.caveat


def test_images_are_mounted_by_fuse_but_for_root(user: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(apptainer, "run", ending(*[STARTED] * 4))
    monkeypatch.setattr(apptainer, "_FUSE", Path("/nonexistent"))
    assert ENVIRONMENT.ready().ready and bool(ENVIRONMENT.ready().caveat) is (user != 0)
    assert ENVIRONMENT.ready(ApptainerOptions(image="folder")).ready
    assert ENVIRONMENT.ready(ApptainerOptions()).ready is (user == 0)


def test_who_may_not_open_fuse_is_told_what_helps(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(apptainer, "run", ending(STARTED))
    monkeypatch.setattr(apptainer, "_FUSE", Path("/nonexistent"))
    state = ENVIRONMENT.ready(ApptainerOptions(user_namespace=True))
    assert not state.ready and state.remedy.startswith("use image: folder")
    assert_sentence(state.detail)


class Node:
    """A host of another machine, with or without the program, on which a trial container ends like this."""

    this_machine = False

    def __init__(self, *, program: bool = True, trial: Completed = STARTED, root: bool = True, fuse: bool = True):
        self.root, self.asked = root, []
        self._program, self._trial, self._fuse = program, trial, fuse

    def run(self, command: Command) -> Completed:
        self.asked.append(command.argv)
        if "apptainer" in command.argv and command.argv[0] == "env":
            return self._trial
        text = b"/tmp/own\n/usr\n/bin\n" if "mktemp" in " ".join(command.argv) else b""
        if command.argv[-1] == "apptainer" and not self._program:
            text = b"apptainer\n"
        missing = "/dev/fuse" in command.argv[-1] and not self._fuse
        return Completed(command.argv, int(missing), text, b"", 0.1)

    def read(self, path: str) -> bytes:
        raise FileNotFoundError(path)


def test_a_trial_container_is_started_on_a_node():
    node: Any = Node()
    assert ENVIRONMENT.ready_on(ApptainerOptions(), node).ready
    trial = next(argv for argv in node.asked if argv[0] == "env")
    assert trial[-4:] == ("/tmp/own/root", "/bin/sh", "-c", ":")
    assert values([*trial], "--mount") == [
        "type=bind,source=/usr,destination=/usr",
        "type=bind,source=/bin,destination=/bin",
    ]
    assert node.asked[-1] == ("rm", "-rf", "/tmp/own")


@pytest.mark.parametrize(
    "node",
    [Node(trial=refused("no-user-namespace.txt")), Node(root=False, fuse=False)],
    ids=["refused", "no fuse"],
)
def test_what_a_node_lacks_is_told(node: Any):
    state = ENVIRONMENT.ready_on(ApptainerOptions(), node)
    assert not state.ready
    assert_sentence(state.detail)


def test_a_site_on_a_host_without_it_is_one_sentence():
    host: Any = Node(program=False)
    host.name = "a"
    opened = ENVIRONMENT.open(ApptainerOptions(), replace(request_of(), host=host))
    with raises_sentence(Unavailable):
        opened.__enter__()


@pytest.mark.parametrize(
    ("capabilities", "dropped"),
    [(ALL, []), ("000001fffeffffff", ["CAP_SYS_RESOURCE"]), ("0000000000000000", [])],
)
def test_root_of_a_container_asks_for_no_more_than_it_has(capabilities: str, dropped: list[str]):
    status = STATUS.format(capabilities)
    assert values([*exec_words(ApptainerOptions(), status)], "--drop-caps") == dropped
    assert values([*exec_words(ApptainerOptions(user_namespace=True), status)], "--drop-caps") == []


@pytest.mark.parametrize("name", ["no-capability.txt", "no-user-namespace.txt"])
def test_why_none_was_made_is_told(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(apptainer, "run", ending(refused(name)))
    monkeypatch.setattr(apptainer.user_namespaces, "refusal", lambda program: None)
    state = ENVIRONMENT.ready()
    assert not state.ready and state.remedy
    assert_sentence(state.detail)


def test_a_closed_setting_is_told_before_its_complaint(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(apptainer, "run", ending(refused("no-user-namespace.txt")))
    monkeypatch.setattr(apptainer.user_namespaces, "refusal", lambda program: ("they are closed", "open them"))
    state = ENVIRONMENT.ready()
    assert (state.detail, state.remedy) == ("they are closed", "open them")


def test_one_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(apptainer, "which", lambda program: None)
    state = ENVIRONMENT.ready()
    assert not state.ready and "apptainer" in state.remedy
    assert_sentence(state.detail)


def test_programs_of_another_user_are_refused():
    nginx = replace(PACKED, process=ProcessDefaults(uid=101, gid=101))
    opened = ENVIRONMENT.open(ApptainerOptions(), request_of(nginx))
    with raises_sentence(Unavailable):
        opened.__enter__()


def test_its_folders_in_memory_are_found_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory_folders, "MEMORY", tmp_path)
    kind, places = MemoryFolders(), RunFolders(tmp_path / "states", tmp_path / "data")
    for run in (RUN, "ba9876543210"):
        (memory_of(run, "1-site") / "tmp").mkdir(parents=True)
    (tmp_path / f"weighbridge_{RUN}-link").symlink_to("/")
    assert {(each.run, each.kind) for each in kind.find(places)} == {
        (RUN, "folder in memory"), ("ba9876543210", "folder in memory"),
    }  # fmt: skip
    kind.remove(OrphanedRun(RUN, tmp_path / "states" / RUN, tmp_path / "data" / RUN))
    assert [each.run for each in kind.find(places)] == ["ba9876543210"]
