"""A run's folder: nobody else can make it, replace what is in it, or have a link followed."""

import os
import stat
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.errors import RunDirectoryError, Unavailable
from weighbridge.runner import run_lock as state

RUN = "0123456789ab"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The base of root's runs and of ours, whoever runs the test."""
    monkeypatch.setattr(state, "ROOTS", tmp_path / "weighbridge")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "weighbridge"


def _as_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    user = os.getuid() + 1000
    monkeypatch.setattr(os, "geteuid", lambda: user)


def _must_refuse() -> None:
    with pytest.raises(Unavailable) as caught, state.claim(RUN, Path("/cache")):
        pytest.fail("it was trusted")
    assert "\n" not in str(caught.value)


def test_the_base_is_the_users_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1234")
    assert state.base() == Path("/run/user/1234/weighbridge")
    for none in ("", "relative"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", none)
        assert state.base() == Path("/tmp/weighbridge-1234")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert state.base() == Path("/run/weighbridge")


def test_a_claim_is_noted_and_forgotten(base: Path):
    with state.claim(RUN, Path("/cache")) as folder:
        assert folder == base / RUN and state.known_runs() == [RUN]
        assert state.caches_of(RUN) == (Path("/cache"),)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(base.stat().st_mode) == (0o755 if os.geteuid() == 0 else 0o700)
        with pytest.raises(RunDirectoryError), state.claim(RUN, Path("/cache")):
            pass
        state.forget(RUN)
    assert not base.exists()


def test_a_base_that_somebody_else_made_is_refused(base: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (base / RUN).mkdir(parents=True)
    (base / RUN / "owner.json").symlink_to(victim)
    _as_another_user(monkeypatch)
    _must_refuse()
    assert victim.read_text() == "precious"
    assert state.known_runs() == []


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_base_that_is_no_folder_is_refused(base: Path, tmp_path: Path, kind: str):
    (tmp_path / "elsewhere").mkdir()
    if kind == "link":
        base.symlink_to(tmp_path / "elsewhere")
    else:
        base.write_text("")
    _must_refuse()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_parent_that_others_can_write_to_must_be_sticky(base: Path):
    base.parent.chmod(0o777)
    _must_refuse()
    base.parent.chmod(0o1777)
    with state.claim(RUN, Path("/cache")):
        assert base.is_dir()


def test_our_own_base_is_closed_to_others(base: Path):
    base.mkdir()
    base.chmod(0o777)
    with state.claim(RUN, Path("/cache")):
        assert stat.S_IMODE(base.stat().st_mode) & 0o022 == 0


@pytest.mark.parametrize("name", ["owner.json", "lock"])
def test_no_link_is_written_through(base: Path, tmp_path: Path, name: str):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (base / RUN).mkdir(parents=True)
    (base / RUN / name).symlink_to(victim)
    _must_refuse()
    assert victim.read_text() == "precious"


def test_who_holds_a_run_is_told(base: Path):
    told = {}
    for purpose in ("run", "clean"):
        with (
            state.lock_run(RUN, purpose),
            pytest.raises(RunDirectoryError) as caught,
            state.claim(RUN, Path("/cache")),
        ):
            pass
        told[purpose] = str(caught.value)
    assert "weighbridge clean" in told["clean"] and "weighbridge clean" not in told["run"]


def test_a_folder_that_is_cleaned_while_it_is_claimed_is_made_again(base: Path, monkeypatch: pytest.MonkeyPatch):
    usual, cleaned = state._take, []

    def take(lock: int) -> bool:
        if not cleaned:
            cleaned.append(RUN)
            state.forget(RUN)
        return usual(lock)

    monkeypatch.setattr(state, "_take", take)
    with state.claim(RUN, Path("/cache")) as folder:
        assert cleaned and (folder / "owner.json").is_file()
        with state.lock_run(RUN, "clean") as held:
            assert held is None


def test_an_id_that_belongs_to_a_run_elsewhere_is_not_claimed(base: Path, tmp_path: Path):
    """A copied or edited run directory must not sweep what another run left."""
    ours, copied = tmp_path / "ours", tmp_path / "copied"
    for directory in (ours, copied):
        directory.mkdir()
    with state.claim(RUN, Path("/cache"), ours):
        pass
    for _ in range(2):
        with raises_sentence(RunDirectoryError), state.claim(RUN, Path("/cache"), copied):
            pass
    with state.claim(RUN, Path("/cache"), ours):
        pass
    ours.rename(tmp_path / "moved")
    with state.claim(RUN, Path("/cache"), tmp_path / "moved"):
        pass
