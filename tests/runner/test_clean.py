"""What `find` tells and `clean` removes, of whatever kinds plug-ins leave: here a machine of one made-up kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sentences import assert_sentence
from weighbridge import registry
from weighbridge.engines.labelled import remove_labelled
from weighbridge.linux.cleanup import OF_HOSTS, DataFolders
from weighbridge.model.cleanup import ENDING, NO_RUN, Cleanup, Leftover, OrphanedRun, RunFolders, discard
from weighbridge.runner import clean
from weighbridge.study import loader
from weighbridge.study.source import parse

RUN, OTHER = "0123456789ab", "ba9876543210"
RULES = "ip6tables nat: 5 of rules, chains and policies"


class MadeUp(Cleanup):
    """Three things of two runs, and one of none; ``steps`` tells what was done, ``stays`` what cannot be removed."""

    owner_may_be_unknown = True

    def __init__(self) -> None:
        self.things = [
            Leftover(RUN, "thing", "one"), Leftover(f"{ENDING}{RUN[-6:]}", "network link", "wb-6789ab-0"),
            Leftover(OTHER, "thing", "two"), Leftover("no id", "thing", "somebody's"),
            Leftover(NO_RUN, "packet filter rules of an engine", RULES),
        ]  # fmt: skip
        self.steps: list[str] = []
        self.stays: set[str] = set()

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        yield from self.things

    def end(self, run: OrphanedRun) -> None:
        self.steps.append(f"end {run.id}")

    def remove(self, run: OrphanedRun) -> None:
        self.steps.append(f"remove {run.id}")
        gone = (run.id, f"{ENDING}{run.id[-6:]}")
        self.things = [each for each in self.things if each.run not in gone or each.name in self.stays]

    def remove_ownerless(self, folders: RunFolders) -> None:
        self.things = [each for each in self.things if each.run != NO_RUN]


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MadeUp:
    made = MadeUp()
    monkeypatch.setattr(clean.registry, "cleanups", lambda: (made,))
    monkeypatch.setattr(clean, "_GONE_S", 0.1)
    monkeypatch.setattr(clean.run_lock, "base", lambda: tmp_path / "states")
    monkeypatch.setattr(clean, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(clean.known_noise, "cache_folder", lambda: tmp_path / "cache")
    return made


ONE, TWO = Leftover(RUN, "thing", "one"), Leftover(OTHER, "thing", "two")
LINK = Leftover(RUN, "network link", "wb-6789ab-0")
FILTER = Leftover(NO_RUN, "packet filter rules of an engine", RULES)


def test_of_one_run_only_its_own_is_removed(kind: MadeUp, tmp_path: Path):
    assert clean.find(RUN).left == (ONE, LINK)
    kind.stays = {"one"}
    found = clean.clean(RUN)
    notes = Leftover(RUN, "state folder", str(tmp_path / "states" / RUN))
    assert (found.left, found.removed) == ((ONE, notes), (LINK,))
    assert kind.steps == [f"end {RUN}", f"remove {RUN}"]
    assert clean.find().left == (ONE, TWO, FILTER, notes)


def test_a_link_of_which_nothing_else_is_left_has_an_id_that_ends_so(kind: MadeUp):
    kind.things = [Leftover(f"{ENDING}6789ab", "network link", "wb-6789ab-0")]
    assert [leftover.run for leftover in clean.find().left] == ["0000006789ab"]
    assert clean.clean().left == ()


@pytest.mark.parametrize("run", [NO_RUN, f"{ENDING}{RUN[-6:]}"])
def test_who_knows_the_owner_of_each_thing_is_believed_only_the_id_of_a_run(
    kind: MadeUp, monkeypatch: pytest.MonkeyPatch, run: str
):
    """Such a value of a variable or a label is somebody's: it would be told for good, as nothing removes it."""
    monkeypatch.setattr(MadeUp, "owner_may_be_unknown", False)
    kind.things = [Leftover(RUN, "thing", "one"), Leftover(run, "container", "somebody's")]
    assert clean.find().left == (ONE,)


def test_what_is_unfinished_in_the_cache_is_found_and_removed(kind: MadeUp, tmp_path: Path):
    kind.things = []
    half, noise = tmp_path / "cache/userlands/.building-abc", tmp_path / "cache/noise-run-4194305-x"
    for folder in (half, noise):
        folder.mkdir(parents=True)
    unfinished = (
        Leftover(NO_RUN, "half-built root filesystem", str(half)),
        Leftover(NO_RUN, "unfinished noise measurement", str(noise)),
    )  # fmt: skip
    assert clean.find().left == unfinished
    assert clean.find(RUN).left == (), "they are of no run"
    assert clean.clean().removed == unfinished


def test_a_noise_measurement_lives_by_its_lock(kind: MadeUp, monkeypatch: pytest.MonkeyPatch):
    """One in another container, which shares the cache, has a number that no process has here."""
    kind.things = []
    monkeypatch.setattr("os.getpid", lambda: 4194305)
    with clean.known_noise.run_folder() as folder:
        assert clean.find().left == ()
        assert clean.clean().removed == () and folder.is_dir()
    assert not folder.exists()


def test_all_is_ended_before_anything_is_removed_and_a_failure_keeps_nothing_else(tmp_path: Path):
    steps: list[str] = []

    class Recorded(Cleanup):
        def __init__(self, name: str, *, host_knows_owner: bool = False) -> None:
            self.name = name
            self.host_knows_owner = host_knows_owner  # type: ignore[misc]

        def find(self, folders: RunFolders) -> tuple[Leftover, ...]:
            return ()

        def end(self, run: OrphanedRun) -> None:
            steps.append(f"end {self.name}")
            raise OSError(f"{self.name} cannot be ended")

        def remove(self, run: OrphanedRun) -> None:
            steps.append(f"remove {self.name}")

    kinds = [Recorded("machine", host_knows_owner=True), Recorded("container")]
    discard(OrphanedRun(RUN, tmp_path, tmp_path), kinds)
    assert steps == ["end container", "end machine", "remove container", "remove machine"]
    steps.clear()
    discard(OrphanedRun(RUN, tmp_path, tmp_path, "far"), kinds)
    assert steps == ["end machine", "remove machine"], "the other would be another host's, too"


class Failing(MadeUp):
    """A kind of which one step fails as a library's does: neither OSError nor ours."""

    def __init__(self, *fails: str) -> None:
        super().__init__()
        self.fails = fails

    def _step(self, name: str) -> None:
        if name in self.fails:
            raise KeyError(f"no {name}")

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        self._step("find")
        yield from super().find(folders)

    def end(self, run: OrphanedRun) -> None:
        self._step("end")
        super().end(run)

    def remove(self, run: OrphanedRun) -> None:
        self._step("remove")
        super().remove(run)

    def remove_ownerless(self, folders: RunFolders) -> None:
        self._step("remove_ownerless")
        super().remove_ownerless(folders)


@pytest.mark.parametrize("step", ["find", "end", "remove", "remove_ownerless"])
def test_a_step_that_fails_keeps_no_other_and_is_told(
    kind: MadeUp, monkeypatch: pytest.MonkeyPatch, step: str, tmp_path: Path
):
    failing = Failing(step)
    failing.things = []
    monkeypatch.setattr(clean.registry, "cleanups", lambda: (kind, failing))
    inventory = clean.clean()
    assert inventory.removed == (ONE, LINK, TWO, FILTER) and kind.things == [Leftover("no id", "thing", "somebody's")]
    assert inventory.failures and all(f"no {step}" in each for each in inventory.failures)


def test_the_notes_of_a_run_stay_where_something_does_that_nobody_said_would(kind: MadeUp, tmp_path: Path):
    with clean.run_lock.claim(RUN, tmp_path / "cache"):
        pass
    kind.stays = {"one"}
    inventory = clean.clean(RUN)
    folder = tmp_path / "states" / RUN
    assert inventory.left == (ONE, Leftover(RUN, "state folder", str(folder))) and (folder / "owner.json").exists()
    with clean.run_lock.lock_run(RUN, "run"):
        (failure,) = clean.sweep_and_forget(RUN)  # as at the end of a run
    assert_sentence(failure)
    kind.stays = set()
    assert clean.clean(RUN).left == () and not folder.exists()


def test_data_in_another_cache_is_found_until_it_is_gone(
    monkeypatch: pytest.MonkeyPatch, kind: MadeUp, immutable: set[Path], tmp_path: Path
):
    """As where ``WEIGHBRIDGE_CACHE`` was another one in the run than it is now."""
    monkeypatch.setattr(clean.registry, "cleanups", lambda: (DataFolders(),))
    data, state = tmp_path / "elsewhere/engines" / RUN, tmp_path / "states" / RUN
    for folder in (data, data.with_name(OTHER), tmp_path / "cache/engines" / OTHER):
        folder.mkdir(parents=True)
    with clean.run_lock.claim(RUN, tmp_path / "elsewhere"):
        pass
    immutable.add(data)
    left = (Leftover(RUN, "engine data", str(data)), Leftover(RUN, "state folder", str(state)))
    assert clean.find(RUN).left == left
    for _ in range(2):
        inventory = clean.clean(RUN)
        assert inventory.left == left and len(inventory.failures) == 1
    others = Leftover(OTHER, "engine data", str(tmp_path / "cache/engines" / OTHER))
    assert clean.find().left == (others, *left), "of a cache that is not ours now only what the notes say"
    immutable.clear()
    assert (clean.clean().removed, clean.find().left) == ((others, *left), ())
    assert not data.exists() and not state.exists()


def test_an_engine_that_refuses_is_told_as_one_and_all_else_in_it_is_removed():
    asked = []
    there = {"a", "b"}

    def ask(method: str, path: str) -> object:
        asked.append(f"{method} {path.partition('?')[0]}")
        if method == "DELETE":
            if path.startswith("/containers/a?"):
                raise OSError("the Docker engine refuses DELETE /containers/a: device or resource busy")
            there.discard(path[len("/containers/") :][0])
            return None
        if path.startswith("/volumes"):
            return {"Volumes": None}
        return [{"Id": each, "Names": [f"/{each}"]} for each in sorted(there)] if "containers" in path else []

    with pytest.raises(OSError, match="Docker engine refuses") as refused:
        remove_labelled(ask, RUN)
    assert there == {"a"} and "container a: " in str(refused.value)
    assert asked[-1] == "GET /images/json", "what else there is was looked for"


STUDY = """
study: s
question: q
userland: {userland}
baseline: native
environments: {{native: {{kind: native}}, other: {{kind: {kind}}}}}
workloads: {{own: {{kind: command, run: 'true'}}}}
"""


@pytest.mark.parametrize("kind", ["netns", "docker", "bubblewrap"])
def test_a_run_of_this_machine_s_programs_leaves_what_its_plug_ins_leave(kind: str):
    study = loader.check(parse(STUDY.format(userland="host", kind=kind), "s"))
    kinds = {type(each) for each in clean.cleanups_of(study)}
    of_environment = {type(each) for each in registry.environments()[kind].cleanup}
    assert kinds == {type(each) for each in OF_HOSTS} | of_environment


def test_a_run_with_a_root_filesystem_can_leave_everything():
    study = loader.check(parse(STUDY.format(userland="{kind: packages}", kind="netns"), "s"))
    assert clean.cleanups_of(study) == registry.cleanups()
