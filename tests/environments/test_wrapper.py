"""Wrappers: their command lines, what their presets claim, and what a site tells of them."""

import errno
import itertools
import os
import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.environments import wrapper
from weighbridge.environments.wrapper import LAUNCHER, SETTINGS, WrapperOptions, command, denials, places_of
from weighbridge.environments.wrapper.denials import ALLOWED, OUTSIDE, READABLE, Trials, tried, unconfined
from weighbridge.environments.wrapper.preset import FOLDER, RULES, Places, PresetError, names, parsed, preset
from weighbridge.environments.wrapper.site import WrappedSite, not_covered
from weighbridge.errors import StudyError, Unavailable
from weighbridge.hosts.chroot import SitePaths, StartedProgram
from weighbridge.linux.packages import TABLE, distributions
from weighbridge.model.command import Command, Completed, ProcessDefaults
from weighbridge.model.environment import NOT_CHECKED, Needs
from weighbridge.model.facts import OUTSIDE_CONNECTIONS, OUTSIDE_WRITES, SHARED_MEMORY_WRITES
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland

from .requested import requested

ENVIRONMENT: Any = registry.environments()["wrapper"]
OUTSIDE_FOLDER = "/run/random"
PLACES = Places("/srv", "/work", "/run", LAUNCHER, SETTINGS, OUTSIDE_FOLDER)
OWN = Userland("d", Path("/"), None, {})
PACKED = Userland("0" * 64, Path("/userland"), Path("/userland.tar"), {})
DATA = Path(__file__).parent / "data/wrapper"
ALWAYS_INSTALLED = {"setpriv", "unshare"}
FIRST = """
summary: a sandbox that does not exist
source: nothing(1)
programs: [sandbox]
command: [sandbox, "{network}", "{seccomp}", --write, "{data}", --]
network:
  none:
    options: [--offline]
    settings: {write: ["{folder}"], network: {allow: []}}
    confines: {namespaces: \\bnet\\b}
  host: {}
confines: {new privileges: ^never$}
denies: [write, connect]
switches:
  seccomp: {on: [--filter], off: [--no-filter], confines: {seccomp: ^filter$}}
version: [sandbox, --version]
"""


def request_of(userland: Userland = OWN) -> SiteRequest:
    return requested(userland, "box")


def test_a_preset_s_command_line_has_the_network_and_the_mechanisms_that_are_on():
    one = parsed("first", FIRST)
    assert one.words("none", frozenset(), PLACES) == ("sandbox", "--offline", "--filter", "--write", "/srv", "--")
    assert one.words("host", frozenset({"seccomp"}), PLACES) == ("sandbox", "--no-filter", "--write", "/srv", "--")
    assert one.settings("none", PLACES) == '{"write": ["/work"], "network": {"allow": []}}'
    assert one.settings("host", PLACES) == ""


def test_each_additional_rule_is_for_a_file_of_its_own():
    text = FIRST.replace('"{seccomp}"', '"{seccomp}", "{rules}"') + 'rule: [--read, "{rule}"]\n'
    words = parsed("first", text).words("host", frozenset(), PLACES, 2)
    added = ("--read", f"{RULES}/0", "--read", f"{RULES}/1")
    assert words == ("sandbox", "--filter", *added, "--write", "/srv", "--")
    assert parsed("first", text).words("host", frozenset(), PLACES) == (
        "sandbox",
        "--filter",
        "--write",
        "/srv",
        "--",
    )


def test_the_launcher_makes_the_files_of_additional_rules():
    parts = SitePaths("/cache/launcher", "/", "", "", None)
    words = command(request_of(), ("box", "--"), "", OUTSIDE_FOLDER, parts, 3)
    assert words[words.index("--rules") + 1] == "3" and words.index("--rules") < words.index("--exec")
    assert "--rules" not in command(request_of(), ("box", "--"), "", OUTSIDE_FOLDER, parts)


def test_rules_are_taken_from_a_study_only_where_a_preset_has_them():
    assert WrapperOptions(preset="landrun", rules=1000).rules == 1000
    for wrong in ({"preset": "setpriv"}, {"command": ("sandbox", "--")}):
        with raises_sentence(ValidationError):
            WrapperOptions.model_validate({**wrong, "rules": 1})


def test_the_network_is_none_unless_a_workload_needs_one():
    one = parsed("first", FIRST)
    assert one.chosen(None, networked=False) == "none" and one.chosen(None, networked=True) == "host"
    assert one.chosen("none", networked=True) == "none" and one.chosen("host", networked=False) == "host"
    assert preset("setpriv").chosen(None, networked=False) == "host"
    assert preset("srt").chosen(None, networked=True) == "none", "check() refuses it"


@pytest.mark.parametrize("name", names())
def test_each_preset_is_complete(name: str):
    one = preset(name)
    for network in one.network:
        for without in (frozenset[str](), frozenset(one.switches)):
            words = one.words(network, without, PLACES)
            assert not [word for word in words if re.search(r"\{(network|" + "|".join(one.switches) + r")\}", word)]
            assert {"{data}", "{folder}", "{settings}", "{launcher}", "{home}"}.isdisjoint(words)
            assert one.programs[0] in words
            assert "{" not in one.settings(network, PLACES).replace('": {', "").lstrip("{")
    assert bool(one.installers()) != (one.programs[0] in distributions(TABLE.read_text())["debian"].packages)
    in_table = {*distributions(TABLE.read_text())["debian"].packages}
    assert {*one.programs} <= in_table | {*one.installers()}
    assert {*one.switches} <= {*registry.mechanisms()}, "explain knows each by its name"
    denied = one.denied(frozenset())
    assert ("write" in denied) != ("write" in one.lacks), "one of the two is true"
    assert ("connect" in denied) == ("none" in one.network)


@pytest.mark.parametrize(
    "change",
    [
        ("{network}", "{networks}"),
        ('"{network}", ', ""),
        ('"{seccomp}"', '"--x={seccomp}"'),
        ("^never$", "("),
        ("new privileges", "privileges"),
        ("none:", "other:"),
        ("  none:", "  host: {}\n  none:"),
        ("command: [", "command: "),
        ('--write, "{data}", --]', '"{rules}", --]\nrule: [--read, file]'),
        ("version:", 'rule: [--read, "{rule}"]\nversion:'),
        ("denies: [write", "denies: [read"),
        ("programs: [sandbox]", "programs: []"),
    ],
    ids=str,
)
def test_a_wrong_preset_is_one_sentence(change: tuple[str, str]):
    with raises_sentence(PresetError):
        parsed("first", FIRST.replace(*change))


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode(errors="replace")))
def test_any_text_is_a_preset_or_one_error(text: str):
    try:
        parsed("any", text)
    except PresetError as error:
        assert "\n" not in str(error)


@given(st.text(max_size=60), st.text(max_size=20).filter(lambda text: "{" not in text))
def test_a_path_is_never_read_as_a_placeholder(text: str, path: str):
    places = Places("{folder}", path, "{data}", "", "", "")
    assert places.filled("{data}{folder}{home}") == "{folder}" + path + "{data}"
    if not re.search("{(data|folder|home|launcher|settings|outside)}", text):
        assert places.filled(text) == text


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"preset": "landrun", "command": ["landrun", "--"]},
        {"preset": "landrum"},
        {"preset": "zzz"},
        {"preset": "setpriv", "network": "none"},
        {"preset": "landrun", "omit": ["seccomp"]},
        {"preset": "proot", "omit": ["seccomp"]},
        {"command": ["a"], "omit": ["seccomp"]},
        {"command": []},
        {"command": ["a", "b\0c"]},
        {"command": ["./box", "--"]},
    ],
    ids=str,
)
def test_wrong_options_are_one_sentence(written: dict[str, Any]):
    with raises_sentence(ValidationError):
        WrapperOptions.model_validate(written)


def test_a_server_needs_a_network():
    def check(**written: Any) -> Any:
        return ENVIRONMENT.check(WrapperOptions.model_validate(written), Needs(network=True))

    assert check(preset="landrun") == check(command=["x"]) == check(preset="firejail", network="host") == []
    for problem in (*check(preset="landrun", network="none"), *check(preset="srt")):
        assert_sentence(problem)
    assert ENVIRONMENT.check(WrapperOptions(preset="srt", network="none"), Needs()) == []


def test_what_can_be_left_out_is_what_is_on():
    assert WrapperOptions(preset="firejail").removable == {"seccomp", "capabilities"}
    assert WrapperOptions(preset="firejail", omit=("seccomp",)).removable == {"capabilities"}
    assert WrapperOptions(command=("x",)).removable == frozenset()


@pytest.fixture(params=[0, 1000], ids=["root", "user"])
def user(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(os, "geteuid", lambda: request.param)
    return int(request.param)


def test_the_launcher_makes_a_native_site_s_layers_and_becomes_the_wrapper(user: int):
    parts = SitePaths("/cache/launcher", "/", "/data", "", None)
    words = command(request_of(replace(OWN, layered="/work")), ("landrun", "--"), "{}", OUTSIDE_FOLDER, parts)
    assert words[0] == "/cache/launcher" and words[-8:] == (
        "--settings", "{}", "--outside", OUTSIDE_FOLDER, "--exec", "landrun", "--", LAUNCHER,
    )  # fmt: skip
    values = dict(itertools.pairwise(words))
    assert (values["--root"], values["--data"], values["--layer"]) == ("/", "/data", "/work")
    assert values.get("--user") == ("self" if user else None)
    assert "--settings" not in command(request_of(), ("landrun", "--"), "", OUTSIDE_FOLDER, parts)


def test_the_places_of_a_site(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folder = str(tmp_path / "real")
    layered = request_of(replace(OWN, layered=str(tmp_path / "link")))
    storage: Any = object()
    cases = {
        (folder, folder): layered, ("/srv", folder): replace(layered, storage=storage),
        ("/tmp", "/tmp"): request_of(), ("/srv", "/srv"): replace(request_of(), storage=storage),
    }  # fmt: skip
    for (data, working), request in cases.items():
        places = places_of(request)
        assert places == Places(data, working, "/run", LAUNCHER, SETTINGS, places.outside)
        assert Path(places.outside).parent == Path("/run") and places.outside != places_of(request).outside


def answering(code: int, stderr: bytes = b"") -> Callable[[Command], Completed]:
    return lambda command: Completed(command.argv, code, b"", stderr, 0.1)


def test_it_is_ready_where_a_trial_program_ran(user: int, monkeypatch: pytest.MonkeyPatch):
    started: list[tuple[str, ...]] = []

    def run(command: Command) -> Completed:
        started.append(command.argv)
        return Completed(command.argv, 0, b"", b"", 0.1)

    monkeypatch.setattr(wrapper, "which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(wrapper, "run", run)
    tried_names = [name for name in names() if user == 0 or not preset(name).only_root]
    assert [name for name in names() if ENVIRONMENT.ready(WrapperOptions(preset=name)).ready] == tried_names
    assert all(argv[0] == "unshare" and argv[-3:] == ("/bin/sh", "-c", ":") for argv in started)
    assert ("--map-root-user" in started[0]) is (user != 0)
    assert ENVIRONMENT.ready(WrapperOptions(command=("x",))).ready and len(started) == len(tried_names), "not tried"


def test_what_it_lacks_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wrapper, "which", lambda program: None)
    monkeypatch.setattr(wrapper, "install_here", lambda programs, commands=None: f"{programs} {commands}")
    srt = ENVIRONMENT.ready(WrapperOptions(preset="srt"))
    own, known, path = (ENVIRONMENT.ready(WrapperOptions(command=(name,))) for name in ("x", "landrun", "/opt/x"))
    assert not srt.ready and "npm install --global @anthropic-ai/sandbox-runtime" in srt.remedy
    assert "go install" in known.remedy and "--in landrun" in known.remedy and "install" not in path.remedy
    for state in (srt, own, known, path):
        assert not state.ready
        assert_sentence(state.detail)
    for options in (WrapperOptions(command=("x",)), WrapperOptions(preset="srt")):
        assert ENVIRONMENT.ready(options, Needs()).ready, "it must be in the root filesystem"


def test_before_the_user_agrees_only_a_name_is_looked_up(monkeypatch: pytest.MonkeyPatch):
    looked: list[str] = []
    monkeypatch.setattr(wrapper, "which", looked.append)
    monkeypatch.setattr(wrapper, "run", lambda command: pytest.fail("it was started"))

    def state(**written: Any) -> Any:
        return ENVIRONMENT.ready_unapproved(WrapperOptions.model_validate(written), Needs(of_this_machine=True))

    assert not state(command=["box", "--"]).ready and looked == ["box"]
    assert state(command=["/opt/box", "--"]).caveat == state(preset="srt").caveat == NOT_CHECKED
    assert looked == ["box"]


@pytest.fixture
def _broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more preset, whose file is wrong."""
    for name in names():
        (tmp_path / f"{name}.yaml").write_text((FOLDER / f"{name}.yaml").read_text())
    (tmp_path / "broken.yaml").write_text("summary: [")
    monkeypatch.setattr(import_module("weighbridge.environments.wrapper.preset"), "FOLDER", tmp_path)


@pytest.mark.usefixtures("_broken")
def test_a_preset_whose_file_is_wrong_is_not_ready_and_the_others_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(wrapper, "which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(wrapper, "run", answering(0))
    variants = ENVIRONMENT.variants()
    states = {name: ENVIRONMENT.ready(options) for name, options in variants.items()}
    assert [name for name, state in states.items() if not state.ready] == ["broken"] and states["broken"].remedy
    assert_sentence(states["broken"].detail)
    assert ENVIRONMENT.unverified(variants["broken"]) == ""
    with raises_sentence(PresetError) as raised:
        WrapperOptions(preset="broken")
    assert cast(PresetError, raised.value).exit_code == StudyError.exit_code


@pytest.mark.parametrize("refusal", [None, ("user namespaces are closed", "open them")])
def test_why_none_was_made_is_told(monkeypatch: pytest.MonkeyPatch, refusal: tuple[str, str] | None):
    monkeypatch.setattr(wrapper, "which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(wrapper, "run", answering(1, b"nsjail: Couldn't launch the child process\n"))
    monkeypatch.setattr(wrapper.user_namespaces, "refusal", lambda program: refusal)
    state = ENVIRONMENT.ready(WrapperOptions(preset="nsjail"))
    assert not state.ready and state.remedy
    assert_sentence(state.detail)


def test_programs_of_another_user_are_refused():
    nginx = replace(PACKED, process=ProcessDefaults(uid=101, gid=101))
    with raises_sentence(Unavailable):
        ENVIRONMENT.open(WrapperOptions(preset="landrun"), request_of(nginx)).__enter__()


@pytest.mark.parametrize("words", [{"preset": "landrun"}, {"command": ["/opt/box", "--"]}], ids=str)
def test_a_root_filesystem_without_the_wrapper_is_refused(words: dict[str, Any]):
    asked: list[tuple[str, ...]] = []

    def run(command: Command) -> Completed:
        asked.append(command.argv)
        return Completed(command.argv, 1, b"", b"", 0.1)

    host: Any = SimpleNamespace(run=run, userland=lambda userland: userland.root, name="here")
    with raises_sentence(Unavailable):
        ENVIRONMENT.open(WrapperOptions.model_validate(words), replace(request_of(PACKED), host=host)).__enter__()
    assert asked[0][4] == "/userland"


OUTSIDE_FOLDERS = ("/run", "/dev/shm", OUTSIDE_FOLDER)


class Box:
    """A site in which files can be written, read and connections made, or not, as it is told."""

    layers = ()
    title = "box"

    def __init__(
        self,
        *denied: str,
        connect: int = 1,
        status: bytes = b"",
        listens: bool = True,
        error: int = errno.EACCES,
        told: str = "connect: Connection refused",
        timed_out: bool = False,
    ) -> None:
        self.denied, self.connect, self.status, self.error = denied, connect, status, error
        self.told, self.timed_out = told, timed_out
        self.removed: list[str] = []
        host: Any = SimpleNamespace(
            layers=(), namespaces=dict, free_ports=lambda: 20100, program=str, run=answering(0 if listens else 1),
            start=lambda command: SimpleNamespace(stop=lambda: None),
        )  # fmt: skip
        self.host = host

    def put(self, path: str, data: bytes) -> None:
        if path in self.denied or str(Path(path).parent) in self.denied:
            raise OSError(self.error, os.strerror(self.error))

    def read(self, path: str) -> bytes:
        if path in self.denied:
            raise PermissionError(13, "Permission denied")
        if path == "/proc/self/status":
            return self.status
        raise FileNotFoundError(2, "No such file or directory")

    def run(self, command: Command) -> Completed:
        if command.argv[1] == "remove":
            self.removed.append(command.argv[2])
            return Completed(command.argv, 0, b"", b"", 0.1)
        return Completed(command.argv, self.connect, b"", self.told.encode(), 0.1, self.timed_out)


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Callable[[Box], Trials]:
    monkeypatch.setattr(denials.build, "ensure", lambda cache, say: Path("/launcher"))
    monkeypatch.setattr(denials, "_LISTENS_S", 0.0)
    any_box: Any = tried
    return lambda box: any_box(box, request_of().run, PLACES)


def test_denials_are_tried_and_nothing_is_left(trials: Callable[[Box], Trials]):
    closed, open_ = Box(*OUTSIDE_FOLDERS), Box(connect=0)
    assert trials(closed).facts == {
        OUTSIDE_WRITES: "refused: Permission denied", SHARED_MEMORY_WRITES: "refused: Permission denied",
        OUTSIDE_CONNECTIONS: "refused: Connection refused",
    }  # fmt: skip
    assert {*trials(open_).facts.values()} == {ALLOWED} and trials(open_).untried == {}
    left = {str(Path(path).parent) for path in open_.removed}
    assert OUTSIDE in open_.removed and left == {*OUTSIDE_FOLDERS, "/work"}, "all that it created"
    assert closed.removed == ["/work/.weighbridge-trial"]
    told = trials(Box(READABLE, "/work/.weighbridge-trial"))
    assert (told.read, told.write) == ("Permission denied", "Permission denied")


def test_a_wrapper_that_denies_one_known_path_is_found(trials: Callable[[Box], Trials]):
    """A wrapper that remounts the folders that it knows, or knows the file, passes no trial at a random place."""
    assert trials(Box("/run")).facts[SHARED_MEMORY_WRITES] == ALLOWED
    assert trials(Box("/run", "/dev/shm")).facts[OUTSIDE_WRITES] == ALLOWED
    assert trials(Box(OUTSIDE)).facts[OUTSIDE_WRITES] == ALLOWED
    one = parsed("first", FIRST)
    facts = CONFINED | {SHARED_MEMORY_WRITES: ALLOWED}
    assert unconfined("box", one, "none", frozenset(), Trials(facts))
    lacking = parsed("first", FIRST + "lacks: {shared memory: programs can write to it}")
    assert not unconfined("box", lacking, "none", frozenset(), Trials(facts))


@pytest.mark.parametrize(
    ("box", "fact"),
    [
        (Box(*OUTSIDE_FOLDERS, error=errno.ENOSPC), OUTSIDE_WRITES),
        (Box(*OUTSIDE_FOLDERS, error=errno.ENOENT), OUTSIDE_WRITES),
        (Box(*OUTSIDE_FOLDERS, listens=False), OUTSIDE_CONNECTIONS),
        (Box(*OUTSIDE_FOLDERS, timed_out=True), OUTSIDE_CONNECTIONS),
        (Box(*OUTSIDE_FOLDERS, connect=-9, told=""), OUTSIDE_CONNECTIONS),
        (Box(*OUTSIDE_FOLDERS, connect=127), OUTSIDE_CONNECTIONS),
        (Box(*OUTSIDE_FOLDERS, told="no answer"), OUTSIDE_CONNECTIONS),
        (Box(*OUTSIDE_FOLDERS, told="connect: Bad file descriptor"), OUTSIDE_CONNECTIONS),
    ],
    ids=["full disk", "no folder", "no listener", "late", "killed", "not started", "proxy", "no socket"],
)
def test_what_could_not_be_tried_is_no_denial(trials: Callable[[Box], Trials], box: Box, fact: str):
    answers = trials(box)
    assert fact not in answers.facts and answers.untried[fact]
    shown = {name: value for name, value in CONFINED.items() if name not in answers.untried}
    with_why = replace(answers, facts=shown)
    assert_sentence(unconfined("box", parsed("first", FIRST), "none", frozenset(), with_why))


@pytest.mark.parametrize("words", ["socket: Operation not permitted", "connect: Network unreachable"])
def test_each_way_to_refuse_a_connection_is_a_denial(trials: Callable[[Box], Trials], words: str):
    assert trials(Box(told=words)).facts[OUTSIDE_CONNECTIONS] == f"refused: {words.rpartition(': ')[2]}"


def test_a_mechanism_that_is_left_out_claims_no_denial():
    assert preset("landrun").denied(frozenset()) == {"write", "connect"}
    assert preset("landrun").denied(frozenset({"landlock"})) == {"connect"}


CONFINED = {
    "new privileges": "never", "namespaces": "mnt net pid", "seccomp": "filter",
    OUTSIDE_WRITES: "refused: Permission denied", SHARED_MEMORY_WRITES: "refused: Permission denied",
    OUTSIDE_CONNECTIONS: "refused: Connection refused",
}  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "read", "write"),
    [
        ({"new privileges": "allowed"}, "", ""),
        ({"namespaces": "mnt pid"}, "", ""),
        ({"seccomp": ""}, "", ""),
        ({OUTSIDE_WRITES: ALLOWED}, "", ""),
        ({OUTSIDE_CONNECTIONS: ALLOWED}, "", ""),
        ({}, "Permission denied", ""),
        ({}, "", "Read-only file system"),
    ],
    ids=str,
)
def test_a_claim_that_does_not_hold_is_one_sentence(facts: dict[str, str], read: str, write: str):
    one, none = parsed("first", FIRST), frozenset[str]()
    assert unconfined("box", one, "none", none, Trials(CONFINED)) == ""
    assert_sentence(unconfined("box", one, "none", none, Trials(CONFINED | facts, read, write)))


def test_only_what_is_on_is_claimed():
    one = parsed("first", FIRST)
    without_filter, networked = (
        CONFINED | {"seccomp": "off"},
        CONFINED | {"namespaces": "mnt", OUTSIDE_CONNECTIONS: ALLOWED},
    )
    assert unconfined("box", one, "none", frozenset({"seccomp"}), Trials(without_filter)) == ""
    assert unconfined("box", one, "host", frozenset(), Trials(networked)) == ""


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.status")))
def test_captured_readings_prove_each_preset(name: str, trials: Callable[[Box], Trials]):
    """The files are /proc/self/status in a site of the preset. Cut off or empty, they prove nothing."""
    one, whole = preset(name), (DATA / f"{name}.status").read_bytes()
    network, namespaces = (
        one.chosen(None, networked=False),
        {"namespaces": "ipc mnt" if name in ("landrun", "sandlock") else "cgroup ipc mnt net pid user uts"},
    )
    of_status = {fact for fact, _ in one.claims(network, frozenset())} - {*namespaces}
    for status in (whole, whole[: whole.index(b"CapInh")], b""):
        facts = trials(Box(*OUTSIDE_FOLDERS, status=status)).facts | namespaces
        proven = not unconfined(name, one, network, frozenset(), Trials(facts))
        assert proven is (status == whole or not of_status), facts


class Gone:
    """A launcher that reads nothing below /proc."""

    name, open_files, pid = "box", 64, 7
    run = start = put = listening = None

    def read(self, path: str) -> bytes:
        raise PermissionError(13, "Permission denied", path)


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "unseen"])
def test_what_programs_cannot_read_is_asked_of_the_host(seen: bool):
    asked: list[str] = []

    def read(path: str) -> bytes:
        asked.append(path)
        return b"Seccomp:\t2\n"

    def run(command: Command) -> Completed:
        found = b"4242\n" if seen and command.argv[-1].startswith("weighbridge") else b"net:[7]\n"
        return Completed(command.argv, 0, found if seen else b"", b"", 0.1)

    host: Any = SimpleNamespace(read=read, run=run, address="", layers=(), root=True)
    launcher: Any = Gone()
    process: Any = SimpleNamespace(pid=99)
    site = WrappedSite(replace(request_of(), host=host), StartedProgram(launcher, process, None, {}))
    assert site.pid == (4242 if seen else 99)
    if seen:
        assert site.read("/proc/self/status") == b"Seccomp:\t2\n" and asked == ["/proc/4242/status"]
        assert site.read("/proc/self/ns/net") == b"net:[7]\n"
    else:  # the number would be that of the wrapper, which is not confined
        with pytest.raises(FileNotFoundError):
            site.read("/proc/self/status")
    with pytest.raises(PermissionError):
        site.read("/etc/shadow")


def test_its_version_is_asked_where_it_leaves_nothing():
    asked: list[tuple[str, ...]] = []

    def run(command: Command) -> Completed:
        asked.append(command.argv)
        return Completed(command.argv, 0, b"firejail version 0.9.72\n\nCompile time support:\n", b"", 0.1)

    host: Any = SimpleNamespace(run=run, root=True, name="here")
    notes = wrapper._notes(replace(request_of(), host=host), preset("firejail"), "none", ("firejail",))
    assert notes["version of the wrapper"] == "0.9.72" and asked[0][:2] == ("unshare", "--mount")
    assert wrapper._notes(replace(request_of(), host=host), None, None, ("x", "--")) == {
        "network": "decided by the wrapper", "wrapper": "x --",
    }  # fmt: skip


def test_what_a_preset_does_not_cover_is_a_fact():
    assert not_covered(preset("landrun"))["not covered: network"].startswith("UDP")


def test_names_of_weigh_are_the_presets():
    assert {*ENVIRONMENT.weighed_in()} == {*ENVIRONMENT.variants()} == {*names()}
    assert ENVIRONMENT.unverified() == "" == ENVIRONMENT.unverified(WrapperOptions(command=("x",)))


def test_the_version_is_asked_once_per_run_and_host():
    asked: list[tuple[str, ...]] = []

    def run(command: Command) -> Completed:
        asked.append(command.argv)
        return Completed(command.argv, 0, b"landrun version 0.1.15\n", b"", 0.1)

    host: Any = SimpleNamespace(run=run, name="here", root=True)
    request = replace(request_of(), host=host)
    notes = [wrapper._notes(request, preset("landrun"), "none", ("landrun",)) for _ in range(3)]
    assert {each["version of the wrapper"] for each in notes} == {"0.1.15"} and len(asked) == 1


def test_the_root_filesystem_is_searched_once_per_run(monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str, ...]] = []

    def run(command: Command) -> Completed:
        asked.append(command.argv)
        return Completed(command.argv, 0, b"", b"", 0.1)

    def no_start(*_: object) -> Any:
        raise Unavailable("not started")

    monkeypatch.setattr(wrapper, "started", no_start)
    host: Any = SimpleNamespace(run=run, userland=lambda userland: userland.root, name="here")
    request = replace(request_of(PACKED), host=host)
    for _ in range(3):
        with pytest.raises(Unavailable, match="not started"):
            ENVIRONMENT.open(WrapperOptions(command=("box", "--")), request).__enter__()
    assert len(asked) == 1


def test_only_the_first_site_of_an_environment_is_tried(monkeypatch: pytest.MonkeyPatch):
    made: list[object] = []
    monkeypatch.setattr(wrapper, "tried", lambda *where: made.append(where) or Trials(CONFINED))
    request, site = request_of(), Box()
    for _ in range(3):
        wrapper._trials(request, site, PLACES, None, None, frozenset())  # type: ignore[arg-type]
    assert len(made) == 1


def test_confinement_is_read_in_each_site_that_stays_open(monkeypatch: pytest.MonkeyPatch):
    """A wrapper that confines only the first site is refused."""
    answers = {OUTSIDE_CONNECTIONS: "refused: Connection refused", OUTSIDE_WRITES: "refused: Permission denied"}
    facts = {"new privileges": "never", SHARED_MEMORY_WRITES: "refused: Permission denied", **answers}
    monkeypatch.setattr(wrapper, "tried", lambda *where: Trials(facts))
    confined, open_ = (Box(status=f"NoNewPrivs:\t{number}\n".encode()) for number in (1, 0))
    request, one = request_of(), parsed("first", FIRST)
    during_a_trial = replace(request, joined_site="1-site")

    def trials(request: SiteRequest, site: Any) -> Trials:
        return wrapper._trials(request, site, PLACES, one, "host", frozenset({"seccomp"}))

    assert trials(request, confined).facts == facts
    with pytest.raises(Unavailable, match="new privileges: allowed"):
        trials(request, open_)
    assert trials(during_a_trial, open_).facts == facts, "it is timed"
