"""What of VirtualBox is outside of its folder: only a run's own is found, and only that is removed."""

import os
from pathlib import Path

import pytest

from weighbridge.features.guests import virtualbox
from weighbridge.model.cleanup import Leftover, OrphanedRun, RunFolders
from weighbridge.model.command import Command, Completed
from weighbridge.model.names import RunId

RUN = RunId("0123456789ab")


@pytest.fixture
def meetings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(virtualbox, "_MEETINGS", tmp_path)
    return tmp_path


def left() -> list[Leftover]:
    return [*virtualbox.VirtualBoxTraces().find(RunFolders(Path("/unused"), Path("/unused")))]


def test_folders_of_runs_are_told_from_the_users(meetings: Path):
    ours = Path(virtualbox.meeting(virtualbox.identity(RUN, 3)))
    ours.mkdir()
    (meetings / ".vbox-root-ipc").mkdir()
    (meetings / f".vbox-{RUN}-4-ipc").write_text("no folder")
    (meetings / f".vbox-{RUN}-5-ipc").symlink_to(meetings / ".vbox-root-ipc")
    assert left() == [Leftover(RUN, "folder of VirtualBox", str(ours))]


def test_what_belongs_to_another_user_is_not_ours(meetings: Path, monkeypatch: pytest.MonkeyPatch):
    (meetings / f".vbox-{RUN}-0-ipc").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert left() == []


def test_a_runs_folders_and_noted_links_are_removed(meetings: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def run(command: Command) -> Completed:
        asked.append(command.argv)
        return Completed(command.argv, 0, b"", b"", 0.0)

    monkeypatch.setattr(virtualbox.process, "run", run)
    monkeypatch.setattr(virtualbox, "FOLDERS", ("/vbox",))
    for owner in (RUN, "ba9876543210"):
        (meetings / f".vbox-{owner}-0-ipc").mkdir()
    state = meetings / "state"
    state.mkdir()
    virtualbox.note_link(state, "vboxnet7")
    (state / "vboxnet").open("a").write("eth0\n")
    virtualbox.VirtualBoxTraces().remove(OrphanedRun(RUN, state, meetings / "data"))
    assert asked == [("/vbox/VBoxNetAdpCtl", "vboxnet7", "remove")], "nothing else is believed to be such a link"
    assert [leftover.run for leftover in left()] == ["ba9876543210"]


def test_a_folder_that_stays_is_an_error_and_the_others_are_removed(meetings: Path, immutable: set[Path]):
    for number in (0, 1):
        (meetings / f".vbox-{RUN}-{number}-ipc").mkdir()
    immutable.add(meetings / f".vbox-{RUN}-0-ipc")
    with pytest.raises(OSError, match="Operation not permitted"):
        virtualbox.VirtualBoxTraces().remove(OrphanedRun(RUN, meetings / "state", meetings / "data"))
    assert [leftover.name for leftover in left()] == [str(meetings / f".vbox-{RUN}-0-ipc")]
