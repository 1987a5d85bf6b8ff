"""What the configuration of an image says of its programs (OCI Image Specification, config)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weighbridge.errors import UserlandError
from weighbridge.model.command import ProcessDefaults


def process_of(config: Mapping[str, Any], root: Path) -> ProcessDefaults:
    """Return what an image's programs are started with. Raises UserlandError where it names a user that it lacks."""
    env = dict(each.partition("=")[::2] for each in config.get("Env") or ())
    user, _, group = str(config.get("User") or "").partition(":")
    if not user:
        return ProcessDefaults(env, config.get("WorkingDir") or "/")
    uid, gid = _user(user, root)
    return ProcessDefaults(env, config.get("WorkingDir") or "/", uid, _group(group, root) if group else gid)


def _user(name: str, root: Path) -> tuple[int, int]:
    """The numbers of a user and of its group, by the image's own passwd(5); of a number that is not in it 0."""
    for fields in _lines(root / "etc/passwd"):
        if len(fields) > 3 and name in (fields[0], fields[2]):
            return int(fields[2]), int(fields[3])
    if name.isdigit():
        return int(name), 0
    raise UserlandError(f"the image's programs run as user '{name}', who is not in its /etc/passwd")


def _group(name: str, root: Path) -> int:
    for fields in _lines(root / "etc/group"):
        if len(fields) > 2 and name in (fields[0], fields[2]):
            return int(fields[2])
    if name.isdigit():
        return int(name)
    raise UserlandError(f"the image's programs run as group '{name}', which is not in its /etc/group")


def _lines(path: Path) -> list[list[str]]:
    """The fields of each line. The file is the image's: a link leads nowhere else."""
    if not path.is_file() or path.is_symlink() or path.parent.is_symlink():
        return []
    lines = [line.split(":") for line in path.read_text(errors="replace").splitlines()]
    return [fields for fields in lines if all(number.isdigit() for number in fields[2:3])]
