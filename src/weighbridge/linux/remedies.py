"""What opens to a user what this machine has: its kernel's modules, and files of a group."""

import grp
import os
import platform
from pathlib import Path

_MODULES = Path("/lib/modules")


def as_root(command: str) -> str:
    """Return a command that only root can run, as this user is told it."""
    return command if os.geteuid() == 0 else f"as root: {command}"


def load_module(name: str) -> str:
    """Return what loads a module of the kernel; another kernel where this one has no such module (depmod(8))."""
    index = _MODULES / platform.release() / "modules.dep"
    try:
        known = f"/{name}.ko" in index.read_text()
    except OSError:
        known = False
    return as_root(f"modprobe {name}") if known else f"use a kernel with the module {name}"


def join_group_of(path: Path) -> str:
    """Return how this user joins the group that may use a file; "" where that is root's alone, or there is none."""
    try:
        number = path.stat().st_gid
        group = grp.getgrgid(number).gr_name
    except (OSError, KeyError):
        return ""
    return f"join the group '{group}' and log in again" if number != 0 else ""
