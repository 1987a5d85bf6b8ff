"""What it takes to build from Debian's archive where the machine is no Debian."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sentences import assert_sentence
from weighbridge.errors import UserlandError
from weighbridge.features.guests import kernel
from weighbridge.linux import packages
from weighbridge.model.command import Command, Completed
from weighbridge.model.userland import UserlandSpec
from weighbridge.userland import commands, debian_archive
from weighbridge.userland.sources.packages import PLUGIN

UBUNTU = 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n'


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An Ubuntu with mmdebstrap and without Debian's keys: its folder of keyrings."""
    release, keyrings, trusted = tmp_path / "os-release", tmp_path / "keyrings", tmp_path / "trusted.gpg.d"
    release.write_text(UBUNTU)
    keyrings.mkdir()
    trusted.mkdir()
    (trusted / "ubuntu-keyring-2018-archive.gpg").write_bytes(b"\x99\x02 <ftpmaster@ubuntu.com>")
    monkeypatch.setattr(packages, "OS_RELEASE", (release,))
    names = ("debian-archive-keyring.pgp", "debian-archive-keyring.gpg")
    monkeypatch.setattr(debian_archive, "KEYRINGS", tuple(keyrings / name for name in names))
    monkeypatch.setattr(debian_archive, "TRUSTED", tmp_path)
    monkeypatch.setattr(debian_archive, "which", lambda name: f"/usr/bin/{name}")
    return keyrings


def test_without_debians_keys_nothing_is_built_and_their_package_is_named(elsewhere: Path, tmp_path: Path):
    for why in (PLUGIN.cannot_build(None, UserlandSpec(), tmp_path), kernel.cannot_build(tmp_path)):
        assert why is not None
        assert_sentence(why[0])
        assert why[1] == "apt-get install debian-archive-keyring"


def test_program_and_keys_are_named_in_one_command(elsewhere: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(debian_archive, "which", lambda _: None)
    lacking = debian_archive.lacking()
    assert lacking is not None and lacking[1] == "apt-get install mmdebstrap debian-archive-keyring"


@pytest.mark.parametrize("name", ["debian-archive-keyring.gpg", "debian-archive-keyring.pgp"])
def test_keys_that_apt_does_not_trust_by_itself_are_named_to_mmdebstrap(
    elsewhere: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    (elsewhere / name).touch()
    assert debian_archive.lacking() is None
    asked: list[tuple[str, ...]] = []

    def run(command: Command, heard: object) -> Completed:
        asked.append(command.argv)
        return Completed(command.argv, 0, b"", b"", 1.0)

    monkeypatch.setattr(commands, "run", run)
    debian_archive.mmdebstrap("bookworm", "x.tar", before=("setpriv", "--"))
    assert asked == [("setpriv", "--", "mmdebstrap", f"--keyring={elsewhere / name}", "bookworm", "x.tar")]


def test_on_debian_apt_trusts_them_already(elsewhere: Path):
    (debian_archive.TRUSTED / "trusted.gpg.d/debian-archive-bookworm-stable.asc").touch()
    assert debian_archive.lacking() is None
    (elsewhere / "debian-archive-keyring.gpg").touch()
    assert debian_archive.keyring_options() == ()


def test_keys_that_the_user_had_apt_trust_are_found_by_whose_they_are(elsewhere: Path):
    file = debian_archive.TRUSTED / "trusted.gpg"
    file.write_bytes(b"\x99\x02 Somebody <somebody@example.org>")
    assert debian_archive.lacking() is not None
    file.write_bytes(b"\x99\x02 Debian Archive Automatic Signing Key (12/bookworm) \x89")
    assert debian_archive.lacking() is None and debian_archive.keyring_options() == ()


def test_the_phases_of_a_build_are_told(monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []

    def run(command: Command, heard: Callable[[str], None]) -> Completed:
        for line in (
            "I: running apt-get update...",
            "Get:1 bookworm",
            "I: installing remaining packages inside",
            "I: done",
        ):
            heard(line)
        return Completed(command.argv, 0, b"", b"", 1.0)

    monkeypatch.setattr(commands, "run", run)
    debian_archive.mmdebstrap("bookworm", "x.tar", say=said.append)
    assert said == ["reading the list of Debian's packages (1 of 6)", "installing the programs (5 of 6)"]


def test_an_unknown_package_is_told_by_the_line_of_apt(elsewhere: Path, monkeypatch: pytest.MonkeyPatch):
    stderr = b"I: running apt-get update...\nE: Unable to locate package none\nE: run_chroot failed: 100\n"
    monkeypatch.setattr(commands, "run", lambda command, _: Completed(command.argv, 25, b"", stderr, 1.0))
    with pytest.raises(UserlandError, match=r"^mmdebstrap failed: E: Unable to locate package none$"):
        debian_archive.mmdebstrap("bookworm", "x.tar")
