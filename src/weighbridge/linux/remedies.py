"""Remedies that give a user access to features of this machine: kernel modules, and files of a group."""

import grp
import os
import platform
from pathlib import Path

_MODULES = Path("/lib/modules")


def as_root(command: str) -> str:
    """Return a command that only root can run, worded for this user."""
    return command if os.geteuid() == 0 else f"as root: {command}"


def load_module(name: str) -> str:
    """Return how to load a kernel module; another kernel if this one has no such module (depmod(8))."""
    index = _MODULES / platform.release() / "modules.dep"
    try:
        known = f"/{name}.ko" in index.read_text()
    except OSError:
        known = False
    return as_root(f"modprobe {name}") if known else f"use a kernel with the module {name}"


def join_group_of(path: Path) -> str:
    """Return how this user joins the group of a file; "" if it is root's group or unknown."""
    try:
        number = path.stat().st_gid
        group = grp.getgrgid(number).gr_name
    except (OSError, KeyError):
        return ""
    return f"join the group '{group}' and log in again" if number != 0 else ""
