"""Machines are asked together what they lack; two names of one machine are told."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.fleets import survey as surveying
from weighbridge.features.fleets.survey import SurveyedMachine, notes_of, refusals, require_machines, survey
from weighbridge.hosts.options import SshOptions
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import MACHINE_ID, NODE
from weighbridge.runner.same_machine import BOOT_ID
from weighbridge.study.loader import check
from weighbridge.study.source import parse

from .test_study import SINGLE

STUDY = check(parse(SINGLE.replace("again: {kind: native}", "box: {kind: bubblewrap, optional: true}"), "study.yaml"))
LIMITED = check(parse(SINGLE + "resources: {cpus: 1, memory: 1GiB, pin: spread}\n", "study.yaml"))


class Machine:
    """An open host."""

    name, this_machine, root, cpuset = "n1", False, True, None
    capabilities = SimpleNamespace(engine=None)

    def __init__(self, facts: Mapping[str, str], missing: str = "") -> None:
        self._facts, self._missing = facts, missing
        self.asked: list[tuple[str, ...]] = []

    def facts(self) -> Mapping[str, str]:
        return self._facts

    def read(self, path: str) -> bytes:
        assert path == BOOT_ID
        return b"boot\n"

    def run(self, command: Command) -> Any:
        self.asked.append(command.argv[-1:])
        return SimpleNamespace(text=self._missing)


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Machine | Exception]:
    """What opens, by the name of the machine."""
    found: dict[str, Machine | Exception] = {}
    opened: set[str] = set()

    @contextmanager
    def host(name: str) -> Iterator[Machine]:
        machine = found[name]
        if isinstance(machine, Exception):
            raise machine
        opened.add(name)
        yield machine
        opened.remove(name)

    def open_host(name: str, *_: object) -> AbstractContextManager[Machine]:
        return host(name)

    kind = SimpleNamespace(options=SshOptions, open=open_host)
    monkeypatch.setattr(registry, "hosts", lambda: {"ssh": kind})
    monkeypatch.setattr(surveying, "sweep_and_forget", lambda _: [])
    monkeypatch.setattr(surveying.run_lock, "lock_run", lambda *_: nullcontext(tmp_path))
    monkeypatch.setattr(surveying.run_lock, "known_runs", list)
    return found


def _asked(machines: Mapping[str, Any]) -> list[SurveyedMachine]:
    said: list[str] = []
    hosts = {name: SshOptions(kind="ssh", destination=name) for name in machines}
    surveyed = survey(STUDY, hosts, said.append)
    assert {*said} == {*machines} and [each.name for each in surveyed] == [*machines]
    return surveyed


def test_what_each_machine_is_and_lacks_is_told_together(
    machines: dict[str, Machine | Exception], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(surveying.platform, "machine", lambda: "x86_64")
    machines["n1"] = Machine({NODE: "one", MACHINE_ID: "1", "architecture": "x86_64"}, "bwrap\n")
    machines["n2"] = Machine({"architecture": "aarch64"})
    machines["n3"] = Unavailable("host n3 (root@n3): its host key is unknown")
    machines["n4"] = EnvironmentLost("host n4: the connection was lost")
    surveyed = _asked(machines)
    assert (surveyed[0].node, surveyed[0].machine_id, surveyed[0].boot) == ("one", "1", "boot")
    assert surveyed[0].lacks == () and len(surveyed[0].notes) == 2
    for note in surveyed[0].notes:
        assert_sentence(note)
    with raises_sentence(Unavailable):
        require_machines(surveyed)


def test_what_a_killed_survey_of_the_same_fleet_left_is_swept(
    machines: dict[str, Machine | Exception], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    machines["n1"] = Machine({NODE: "n1"})
    locked, swept = list[str](), list[str]()

    def lock(run_id: str, _: str) -> AbstractContextManager[Path]:
        locked.append(run_id)
        return nullcontext(tmp_path)

    monkeypatch.setattr(surveying.run_lock, "lock_run", lock)
    monkeypatch.setattr(surveying, "sweep_and_forget", swept.append)
    hosts = {"n1": SshOptions(kind="ssh", destination="n1")}
    for fleet in ("/a", "/a", "/b"):
        survey(STUDY, hosts, lambda _: None, fleet)
        monkeypatch.setattr(surveying.run_lock, "known_runs", lambda: locked[:1])
    assert locked[0] == locked[1] != locked[2] and swept == locked[:1]


def test_machines_with_another_weighbridge_or_none_are_told_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(surveying.metadata, "version", lambda _: "0.3.1")
    said = {
        "n1": (0, "weighbridge 0.3.1\nlauncher 7 (compiled on this machine)\n", ""),
        "n2": (0, "weighbridge 0.2.0\n", ""),
        "n3": (127, "", "step: 2: /opt/bin/python3: not found\nsrun: error: n3: task 0: Exited with exit code 127\n"),
        "n4": (1, "", ""),
    }

    def run(command: Command) -> Completed:
        code, out, err = said[command.argv[0]]
        return Completed(command.argv, code, out.encode(), err.encode(), 0.1)

    monkeypatch.setattr(surveying, "run", run)
    machines = [*map(SurveyedMachine, said), SurveyedMachine("n5", lacks=("it is down",))]
    with raises_sentence(Unavailable):
        require_machines(surveying.with_weighbridge(machines, lambda name: (name, "--version")))


class UsersMachine(Machine):
    """One on which our user is not root, and may have no control groups, or one without these limits."""

    root = False

    def __init__(self, group: Any) -> None:
        super().__init__({})
        self._group = group

    def read(self, path: str) -> bytes:
        raise FileNotFoundError(path)

    def cpus_online(self) -> list[int]:
        return [0, 1]

    def group(self, name: str) -> Any:
        if isinstance(self._group, Exception):
            raise self._group
        return self._group


def test_limits_that_a_user_cannot_have_are_told_first(machines: dict[str, Machine | Exception]):
    removed: list[bool] = []
    partly = SimpleNamespace(
        limit=lambda limits: {"pin": "the controller cpuset is not delegated to this user"},
        remove=lambda: removed.append(True),
    )
    none = Unavailable("host n1: no control group can be created: only root can use control groups of version 1")
    machines |= {"n1": UsersMachine(none), "n2": UsersMachine(none), "n3": UsersMachine(partly)}
    hosts = {name: SshOptions(kind="ssh", destination=name) for name in machines}
    notes = notes_of(survey(LIMITED, hosts, lambda _: None))
    assert len(notes) == 2 and notes[0].startswith("n1, n2: ") and notes[1].startswith("n3: ") and removed
    for note in notes:
        assert_sentence(note)


def test_machines_that_lack_nothing_are_taken(machines: dict[str, Machine | Exception]):
    machines |= {name: Machine({NODE: name, MACHINE_ID: name}) for name in ("n1", "n2")}
    require_machines(_asked(machines))


def _known(ids: Sequence[tuple[str, str]]) -> list[str]:
    return refusals([SurveyedMachine(f"n{at}", machine_id=each, boot=boot) for at, (each, boot) in enumerate(ids)])


def test_one_machine_under_two_names_is_told():
    (reason,) = _known([("1", "x"), ("2", "x"), ("1", "x")])
    assert_sentence(reason)


def test_clones_of_one_image_are_machines_of_their_own_and_so_are_those_without_an_id():
    assert _known([("1", "x"), ("1", "y")]) == _known([("", "x"), ("", "x")]) == []
