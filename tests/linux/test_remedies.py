"""What is said to help does: a module that this kernel has, a group that a file has, root where that is who runs."""

import os
from pathlib import Path

import pytest

from weighbridge.linux import remedies


def test_a_module_is_loaded_where_the_kernel_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(remedies, "_MODULES", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert remedies.load_module("tun") == "use a kernel with the module tun"
    folder = tmp_path / remedies.platform.release()
    folder.mkdir()
    (folder / "modules.dep").write_text("kernel/drivers/net/tun.ko.xz:\n")
    assert remedies.load_module("tun") == "as root: modprobe tun"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert remedies.load_module("tun") == "modprobe tun"


def test_a_group_is_named_that_is_not_root_s(tmp_path: Path):
    assert remedies.join_group_of(tmp_path / "none") == ""
    assert remedies.join_group_of(Path("/etc/passwd")) == ""
    if (shadow := Path("/etc/shadow")).exists() and shadow.stat().st_gid:
        assert "and log in again" in remedies.join_group_of(shadow)
