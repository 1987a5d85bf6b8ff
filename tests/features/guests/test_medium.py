"""What a boot medium is made of, and what is told where a part of it is missing."""

from pathlib import Path

import pytest

from weighbridge.features.guests import medium
from weighbridge.features.guests.words import words


def test_the_boot_loader_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(medium, "LOADER_FOLDERS", (tmp_path / "none", tmp_path))
    (tmp_path / "isolinux.bin").touch()
    assert medium.cannot_build() == (
        "ldlinux.c32, which builds the guests' boot medium, is missing", "apt-get install syslinux-common"
    )  # fmt: skip
    (tmp_path / "ldlinux.c32").touch()
    assert medium.cannot_build() is None


def test_a_guest_without_a_network_is_told_of_none():
    told = words("guest", ("ext4", "sd_mod"), ("/dev/sda", "/dev/sdb"), None, 1024)
    assert told == (
        "--modules", "ext4,sd_mod", "--disk", "/dev/sda", "--data", "/dev/sdb", "--files", "1024", "--name", "guest"
    )  # fmt: skip
