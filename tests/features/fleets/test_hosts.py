"""The list of ssh machines: its lines, the machines' names, and the process that drives from here."""

import os
from pathlib import Path

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.errors import RunDirectoryError, StudyError, Unavailable
from weighbridge.features.fleets.driven_here import most_runs
from weighbridge.features.fleets.on.hosts import PLUGIN, HostsOptions
from weighbridge.features.fleets.providers import provided_by, provider_of
from weighbridge.linux import detached
from weighbridge.linux.detached import DetachedProcess, parsed
from weighbridge.model.host_kind import HostKind

from .test_folder import FLEET


def _listed(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "hosts.txt"
    path.write_text(text)
    return path


def _options(tmp_path: Path, text: str, **given: object):
    provider, options = provided_by(str(_listed(tmp_path, text)), given)
    assert provider is PLUGIN
    return options


def test_each_line_is_a_machine_with_options(tmp_path: Path):
    options = _options(
        tmp_path, "# mine\nroot@n1\n\nn2.example address=10.0.0.2 interface=eth1 # far\n n3:2222 sudo=true\n"
    )
    assert PLUGIN.machines(options) == ("n1", "n2.example", "n3_2222") and PLUGIN.count(options) == 3
    assert PLUGIN.host(options, "n2.example") == {
        "kind": "ssh", "destination": "n2.example", "address": "10.0.0.2", "interface": "eth1",
    }  # fmt: skip
    assert PLUGIN.host(options, "n3_2222")["sudo"] is True
    hosts = PLUGIN.hosts(options, ("n1", "n3_2222"))
    kind: HostKind = registry.hosts()["ssh"]
    assert [kind.options.model_validate(host).destination for host in hosts] == ["root@n1", "n3:2222"]
    assert PLUGIN.allotted(options) == PLUGIN.machines(options)


def test_what_holds_for_all_is_said_once(tmp_path: Path):
    options = _options(tmp_path, "n1 sudo=false\nn2\n", sudo="true", config="conf")
    assert PLUGIN.host(options, "n1")["sudo"] is False and PLUGIN.host(options, "n2")["sudo"] is True
    assert PLUGIN.host(options, "n2")["config"] == str(Path("conf").absolute())


def test_machines_of_one_name_are_told_by_their_whole_destinations(tmp_path: Path):
    options = _options(tmp_path, "a@n1\nb@n1\nalone\na--b\n::1\n")
    names = PLUGIN.machines(options)
    assert names == ("a_n1", "b_n1", "alone_", "a-b", "1")
    assert [PLUGIN.host(options, name)["destination"] for name in names[:2]] == ["a@n1", "b@n1"]


@pytest.mark.parametrize(
    "text", ["", "# none\n", "n1\nn2\nn1\n", "n1 fast\n", "n1 =x\n", "n1 sudo=\n"],
    ids=["empty", "comment", "twice", "word", "no key", "no value"],
)  # fmt: skip
def test_a_list_that_is_wrong_is_told_with_its_line(tmp_path: Path, text: str):
    with raises_sentence(StudyError):
        provided_by(str(_listed(tmp_path, text)), {})


def test_what_is_no_list_is_told(tmp_path: Path):
    path = tmp_path / "hosts.txt"
    for content in (b"\xff\xfe", b"n" * 2**21):
        path.write_bytes(content)
        with raises_sentence(StudyError):
            provided_by(str(path), {})
    for missing in (str(tmp_path / "no-such"), str(tmp_path)):
        with raises_sentence(StudyError):
            provided_by(missing, {})


@pytest.mark.parametrize(
    "given", [{"partition": "x"}, {"nodes": "few"}, {"nodes": "0"}], ids=["option", "number", "none"]
)
def test_a_wrong_option_is_told(tmp_path: Path, given: dict[str, object]):
    with raises_sentence(ValueError):
        provided_by(str(_listed(tmp_path, "n1\n")), given)


def test_a_word_that_names_nobody_is_told():
    with pytest.raises(ValueError, match=r"^--on nobody: this is neither a file"):
        provided_by("nobody", {})


def test_fewer_machines_than_asked_are_told_and_of_more_the_first_are_taken(tmp_path: Path):
    assert PLUGIN.machines(_options(tmp_path, "n1\nn2\nn3\n", nodes="2")) == ("n1", "n2")
    with raises_sentence(Unavailable):
        PLUGIN.count(_options(tmp_path, "n1\n", nodes="2"))


def test_what_a_fleet_has_kept_gives_the_same_machines(tmp_path: Path):
    options = _options(tmp_path, "root@n1 address=10.0.0.1\nn2\n")
    (tmp_path / "hosts.txt").unlink()
    assert provider_of(FLEET.model_copy(update={"on": options.model_dump(mode="json")})) == (PLUGIN, options)


@pytest.mark.parametrize("on", [{}, {"kind": "moon"}, {"kind": "hosts"}, {"kind": "hosts", "file": "x", "listed": 3}])
def test_what_nobody_provides_any_more_is_told(on: dict[str, object]):
    with raises_sentence(RunDirectoryError):
        provider_of(FLEET.model_copy(update={"on": on}))


def test_a_process_is_told_from_others_of_its_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    own = DetachedProcess(os.getpid(), detached._started(os.getpid()) or 0, detached._kernel(), "n1:3f")
    assert parsed(str(own)) == own and own.is_alive and len(own.command) > 1
    command = ("python3", "-m", "weighbridge", "fleet", "drive", "--yes", str(tmp_path))
    monkeypatch.setattr(DetachedProcess, "command", command)
    options = _options(tmp_path, "n1\n")
    assert PLUGIN.state(options, str(own)).state == "running"
    before = DetachedProcess(own.pid, own.started - 1, own.kernel)
    assert not before.is_alive and PLUGIN.state(options, str(before)).state == "ended"
    elsewhere = DetachedProcess(own.pid, own.started, "another pid:[4026531836]")
    assert not elsewhere.is_alive and PLUGIN.state(options, str(elsewhere)).state == "unknown"
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *which: signals.append(which))
    for each in (before, elsewhere, own):
        PLUGIN.cancel(options, str(each), tmp_path / "x" / "..")
    assert signals == [(own.pid, 15)]
    with pytest.raises(Unavailable, match="was not stopped"):  # somebody else's folder may name any process
        PLUGIN.cancel(options, str(own), Path("/another"))
    assert len(signals) == 1


def test_a_driver_of_before_the_last_boot_has_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(detached, "_machine", lambda: "n1:3f")
    options = _options(tmp_path, "n1\n")
    for machine, state in (("n1:3f", "ended"), ("n2:3f", "unknown"), ("", "unknown")):
        assert PLUGIN.state(options, str(DetachedProcess(7, 8, "boot pid:[1]", machine))).state == state
    assert PLUGIN.state(options, "7 8 boot pid:[1]").state == "unknown"


@pytest.mark.parametrize("text", ["", "x", "1 2", "x 2 y", "1 x y"])
def test_no_process_is_read_of_other_words(text: str, tmp_path: Path):
    assert parsed(text) is None
    assert PLUGIN.state(_options(tmp_path, "n1\n"), text).state == "unknown"


def test_another_user_s_driver_is_not_cancelled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(DetachedProcess, "command", ())
    own = DetachedProcess(os.getpid(), detached._started(os.getpid()) or 0, detached._kernel())
    with pytest.raises(Unavailable) as error:
        PLUGIN.cancel(_options(tmp_path, "n1\n"), str(own), tmp_path)
    assert_sentence(str(error.value).replace(str(os.getpid()), "PID"))


def test_as_many_runs_go_at_once_as_this_machine_bears():
    assert most_runs(2, 24 << 30) == 16 and most_runs(64, 256 << 30) == 512
    assert most_runs(64, 4 << 30) == 12 and most_runs(1, 1 << 20) == 1
    assert PLUGIN.at_once(HostsOptions(file="/f", listed=({"destination": "a"},), at_once=3)) == 3
