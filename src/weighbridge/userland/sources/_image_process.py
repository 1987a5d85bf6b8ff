"""The process settings in the configuration of an image (OCI Image Specification, config)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.errors import UserlandError
from weighbridge.model.command import ProcessDefaults


def process_of(config: Mapping[str, Any], root: Path) -> ProcessDefaults:
    """Return how an image's programs start, as in Docker: HOME is the user's, unless Env has one.

    Raises UserlandError if it names a user that it does not have.
    """
    env = dict(each.partition("=")[::2] for each in config.get("Env") or ())
    cwd = config.get("WorkingDir") or "/"
    name, _, group = str(config.get("User") or "").partition(":")
    user = _user(name or "0", root)
    if not env.get("HOME"):
        env["HOME"] = user.home
    if not name:
        return ProcessDefaults(env, cwd)
    if group:  # an explicit group excludes other groups
        return ProcessDefaults(env, cwd, user.uid, _group(group, root))
    return ProcessDefaults(env, cwd, user.uid, user.gid, _groups_with(user.name, root))


@dataclass(frozen=True, slots=True)
class _User:
    """A user of an image; ``name`` is "" for a number that is not in its passwd(5)."""

    name: str
    uid: int
    gid: int
    home: str


def _user(name: str, root: Path) -> _User:
    """Return a user by the image's passwd(5); an unlisted number has group 0 and the root folder."""
    for fields in _lines(root / "etc/passwd"):
        if len(fields) > 3 and name in (fields[0], fields[2]):
            return _User(fields[0], int(fields[2]), int(fields[3]), "".join(fields[5:6]) or "/")
    if name.isdigit():
        return _User("", int(name), 0, "/")
    raise UserlandError(f"the image's user '{name}' is not in its /etc/passwd: add it, or use a number")


def _groups_with(user: str, root: Path) -> tuple[int, ...]:
    members = ((fields[2], fields[3].split(",")) for fields in _lines(root / "etc/group") if len(fields) > 3)
    return tuple(int(number) for number, names in members if user and user in names)


def _group(name: str, root: Path) -> int:
    for fields in _lines(root / "etc/group"):
        if len(fields) > 2 and name in (fields[0], fields[2]):
            return int(fields[2])
    if name.isdigit():
        return int(name)
    raise UserlandError(f"the image's group '{name}' is not in its /etc/group: add it, or use a number")


def _lines(path: Path) -> list[list[str]]:
    """Return the fields of each line; links are not followed, because the file comes from an image."""
    if not path.is_file() or path.is_symlink() or path.parent.is_symlink():
        return []
    lines = [line.split(":") for line in path.read_text(errors="replace").splitlines()]
    return [fields for fields in lines if all(number.isdigit() for number in fields[2:3])]
