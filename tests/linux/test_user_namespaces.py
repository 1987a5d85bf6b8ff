"""What closes user namespaces is told from a kernel that lacks something. What unshare says is captured
where max_user_namespaces closes them; this project's machines have neither of the other two settings."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import assert_sentence
from weighbridge.errors import Unavailable
from weighbridge.linux import user_namespaces
from weighbridge.linux.user_namespaces import first_free, refusal
from weighbridge.model.command import Command, Completed

NO_ROOM = b"unshare: unshare failed: No space left on device\n"
"""With user.max_user_namespaces 0, in a nested namespace on Debian 12."""
NOT_PERMITTED = b"unshare: unshare failed: Operation not permitted\n"
"""With kernel.unprivileged_userns_clone 0, or in a container whose filter of system calls forbids it."""
UBUNTU = b"unshare: write failed /proc/self/uid_map: Operation not permitted\n"
"""With kernel.apparmor_restrict_unprivileged_userns 1."""


def machine(monkeypatch: pytest.MonkeyPatch, folder: Path, said: bytes, *, user: int = 1000, **settings: str) -> None:
    def run(command: Command) -> Completed:
        assert command.argv == ("unshare", "--map-root-user", "true")
        return Completed(command.argv, 1 if said else 0, b"", said, 0.01)

    for name, value in settings.items():
        group, _, rest = name.partition("_")
        file = folder / group / rest
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{value}\n")
    monkeypatch.setattr(user_namespaces, "run", run)
    monkeypatch.setattr(user_namespaces, "_SETTINGS_FOLDER", folder)
    monkeypatch.setattr(user_namespaces, "_PROFILES", folder / "apparmor.d")
    monkeypatch.setattr(os, "geteuid", lambda: user)


@pytest.mark.parametrize(
    ("said", "settings", "why", "remedy"),
    [
        (
            NO_ROOM,
            {"user_max_user_namespaces": "0"},
            "user.max_user_namespaces is 0",
            "user.max_user_namespaces=15",
        ),
        (
            NOT_PERMITTED,
            {"user_max_user_namespaces": "96364", "kernel_unprivileged_userns_clone": "0"},
            "kernel.unprivileged_userns_clone is 0",
            "kernel.unprivileged_userns_clone=1",
        ),
        (
            UBUNTU,
            {"kernel_unprivileged_userns_clone": "1", "kernel_apparmor_restrict_unprivileged_userns": "1"},
            "kernel.apparmor_restrict_unprivileged_userns is 1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ],
)
def test_the_setting_that_closes_them_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes, settings: dict[str, str], why: str, remedy: str
):
    machine(monkeypatch, tmp_path, said, **settings)
    found = refusal()
    assert found is not None
    assert found[0] == f"this user cannot create user namespaces: {why}"
    assert found[1].startswith(f"as root: sysctl -w {remedy}")


def test_where_one_can_be_made_settings_say_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    machine(monkeypatch, tmp_path, b"", kernel_apparmor_restrict_unprivileged_userns="1")
    assert refusal() is None


def test_where_no_setting_closes_them_unshare_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    machine(monkeypatch, tmp_path, NOT_PERMITTED, user_max_user_namespaces="96364")
    found = refusal()
    assert found is not None
    assert_sentence(found[0])


def test_a_program_with_a_profile_is_not_refused_by_apparmor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    machine(monkeypatch, tmp_path, UBUNTU, kernel_apparmor_restrict_unprivileged_userns="1")
    assert refusal("podman") is not None
    (tmp_path / "apparmor.d").mkdir()
    (tmp_path / "apparmor.d/podman").touch()
    assert refusal("podman") is None and refusal("mmdebstrap") is not None and refusal() is not None


def test_roots_are_closed_by_their_number_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    closed = {"kernel_unprivileged_userns_clone": "0", "user_max_user_namespaces": "0"}
    machine(monkeypatch, tmp_path, NO_ROOM, user=0, **closed)
    found = refusal()
    assert found is not None
    assert_sentence(found[0])


@pytest.mark.parametrize(("path", "remedy"), [(None, "util-linux"), ("/usr/bin/unshare", "run as root")])
def test_without_the_program_that_tries_it_its_package_is_named(
    monkeypatch: pytest.MonkeyPatch, path: str | None, remedy: str
):
    def run(command: Command) -> Completed:
        raise Unavailable("the program 'unshare' cannot be started: why")

    monkeypatch.setattr(user_namespaces, "run", run)
    monkeypatch.setattr(user_namespaces.shutil, "which", lambda _: path)
    reason = refusal()
    assert reason is not None and reason[0].endswith("cannot be started: why") and remedy in reason[1]


RANGES = st.lists(st.tuples(st.integers(0, 600_000), st.integers(0, 300_000)))


def test_the_first_range_that_is_free_in_both_files():
    assert first_free([]) == range(100_000, 165_536)
    assert first_free(["a:100000:65536\n", "b:165536:65536\n"]) == range(231_072, 296_608)
    assert first_free(["a:165536:65536\n"]) == range(100_000, 165_536), "a gap that is large enough"
    assert first_free(["a:165535:1\n", "a:100000:1\n"]) == range(165_536, 231_072), "one that is too small"


@given(RANGES, RANGES)
def test_it_overlaps_nobodys(users: list[tuple[int, int]], groups: list[tuple[int, int]]):
    texts = ["".join(f"a:{first}:{count}\n" for first, count in each) for each in (users, groups)]
    free = first_free(texts)
    assert len(free) == 65_536 and free[0] >= 100_000
    for first, count in (*users, *groups):
        assert count == 0 or first + count <= free[0] or first > free[-1]
