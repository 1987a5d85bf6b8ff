"""A kept file is read like its run directory, within limits, and nothing of it is written to a disk."""

import lzma
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from report.made_up_runs import Recipe, make_run, two_versions
from sentences import raises_sentence
from weighbridge.errors import RunDirectoryError
from weighbridge.store import unpacking
from weighbridge.store.database import DATABASE
from weighbridge.store.run import RunStore
from weighbridge.store.versions import can_continue

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user: needs root")


@pytest.fixture
def kept(run: Path, tmp_path: Path) -> Path:
    """The kept file of a run."""
    path = tmp_path / "run.sqlite.xz"
    path.write_bytes(lzma.compress((run / DATABASE).read_bytes()))
    return path


def test_a_kept_file_is_read_as_its_run(run: Path, kept: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")  # every temporary file would fail
    before = sorted(kept.parent.iterdir())
    with RunStore(kept) as store, RunStore(run) as original:
        assert store.info() == original.info()
        assert store.values() == original.values()
        assert store.file() == (run / DATABASE).read_bytes()
        assert store.directory == kept and store.is_kept_file and not original.is_kept_file
        assert can_continue(original) and not can_continue(store)
    assert sorted(kept.parent.iterdir()) == before


def test_a_copy_can_be_changed_and_the_run_stays(kept: Path):
    with RunStore(kept) as store:
        copy = store.copy()
        copy.execute("DELETE FROM run")
        copy.close()
        assert store.run_id == "0123456789ab"


def test_a_kept_file_is_not_written(kept: Path):
    content = kept.read_bytes()
    with raises_sentence(RunDirectoryError):
        RunStore(kept, writable=True)
    assert kept.read_bytes() == content


def test_two_versions_are_measured_again_in_their_repository(tmp_path: Path):
    make_run(tmp_path / "run", Recipe(**two_versions(blocks=6))).close()
    kept = tmp_path / "kept.sqlite.xz"
    kept.write_bytes(lzma.compress((tmp_path / "run" / DATABASE).read_bytes()))
    with RunStore(kept) as store, raises_sentence(RunDirectoryError):
        store.require_changeable()


def test_a_folder_with_the_name_of_a_kept_file_is_a_run(run: Path):
    folder = run.rename(run.parent / "folder.sqlite.xz")
    with RunStore(folder, writable=True) as store:
        assert not store.is_kept_file


# -- hostile files ---------------------------------------------------------------------------------


def _content(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: (path.write_bytes(change(path.read_bytes())), None)[1]


def _link(path: Path) -> None:
    path.symlink_to(path.rename(path.parent / "elsewhere"))


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nothing")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _large(path: Path) -> None:
    os.truncate(path, unpacking.MOST_PACKED + 1)


BOMB = lzma.compress(bytes(unpacking.MOST_UNPACKED + 1), preset=0)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(_content(lambda data: data[:-1]), id="cut"),
        pytest.param(_content(lambda data: data[: len(data) // 2]), id="half"),
        pytest.param(_content(lambda _: b""), id="empty"),
        pytest.param(_content(lambda _: b"not xz"), id="not-xz"),
        pytest.param(_content(lambda data: lzma.compress(lzma.decompress(data), lzma.FORMAT_ALONE)), id="old-lzma"),
        pytest.param(_content(lambda data: data + b"more"), id="trailing"),
        pytest.param(_content(lambda data: data + data), id="twice"),
        pytest.param(_content(lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:]), id="one-bit"),
        pytest.param(_content(lambda _: lzma.compress(b"no database" * 99)), id="no-database"),
        pytest.param(_content(lambda _: lzma.compress(b"")), id="empty-database"),
        pytest.param(_content(lambda _: BOMB), id="bomb"),
        pytest.param(_large, id="large"),
        pytest.param(_link, id="link"),
        pytest.param(_dangling, id="dangling-link"),
        pytest.param(_pipe, id="pipe"),
        pytest.param(Path.unlink, id="missing"),
    ],
)
def test_a_file_that_is_no_kept_run_is_one_sentence(kept: Path, spoil: Callable[[Path], None]):
    spoil(kept)
    with raises_sentence(RunDirectoryError) as error:
        RunStore(kept)
    assert error.value.exit_code == RunDirectoryError.exit_code


def test_a_bomb_is_small():
    assert len(BOMB) < unpacking.MOST_PACKED / 100


def test_a_file_that_needs_much_memory_is_refused(kept: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(unpacking, "MOST_MEMORY", 2**20)
    with raises_sentence(RunDirectoryError):
        RunStore(kept)


def test_the_highest_level_of_xz_can_be_read(run: Path, kept: Path):
    kept.write_bytes(lzma.compress((run / DATABASE).read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    RunStore(kept).close()


def test_a_name_can_have_a_line_break(kept: Path):
    named = kept.rename(kept.parent / "a\nb.sqlite.xz")
    with RunStore(named) as store:
        assert store.run_id == "0123456789ab"


@AS_ROOT
def test_a_file_of_another_user_is_read(kept: Path):
    os.chown(kept, NOBODY, NOBODY)
    with RunStore(kept) as store:
        assert store.run_id == "0123456789ab"


@AS_ROOT
def test_a_second_name_of_another_users_file_is_refused(kept: Path):
    os.chown(kept, NOBODY, NOBODY)
    (kept.parent / "second").hardlink_to(kept)
    with raises_sentence(RunDirectoryError):
        RunStore(kept)
