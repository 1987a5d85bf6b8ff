"""The files of an image are those that an engine gives its containers, to the byte, however its layers made them."""

import hashlib
import io
import os
import stat
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from weighbridge.engines.docker import Engine, engine
from weighbridge.engines.labelled import LABEL
from weighbridge.engines.layers import image_archive
from weighbridge.hosts.local import LocalHost
from weighbridge.model.userland import UserlandSpec
from weighbridge.userland.products import archive, root
from weighbridge.userland.sources import image, saved_image

from .conftest import open_run

RUN = "5a4ed4008123"
SPEC = UserlandSpec()
Entry = tuple[str, bytes | None]
"""What a name of a layer is: "file", "link" (a hard one), "symlink" or "folder", and what it holds."""


def layer(entries: Mapping[str, Entry]) -> bytes:
    made = io.BytesIO()
    types = {"link": tarfile.LNKTYPE, "symlink": tarfile.SYMTYPE, "folder": tarfile.DIRTYPE, "file": tarfile.REGTYPE}
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, (kind, content) in entries.items():
            about = tarfile.TarInfo(name)
            about.type, about.mode, about.uid, about.mtime = types[kind], 0o755, 7, 1_000_000_000
            if kind in ("link", "symlink"):
                about.linkname = (content or b"").decode()
            elif kind == "file":
                about.size = len(content or b"")
            if kind in ("file", "link") and content != b"l":  # as an engine saves it: of links, too
                about.pax_headers = {"SCHILY.xattr.security.capability": CAPABILITY.decode()}
            tar.addfile(about, io.BytesIO(content or b"") if kind == "file" else None)
    return made.getvalue()


CAPABILITY = bytes.fromhex("0100000200040000") + bytes(12)
"""cap_net_bind_service=ep (capabilities(7))."""
FOLDER: Entry = ("folder", None)
GONE: Entry = ("file", b"")
LOWER = {
    "d": FOLDER, "d/a": ("file", b"lower"), "d/b": ("link", b"d/a"), "d/c": ("link", b"d/b"), "e": FOLDER,
    "e/x": ("file", b"kept"), "e/y": ("link", b"e/x"), "f": FOLDER, "f/in": ("file", b"opaque"), "g": FOLDER,
    "g/out": ("link", b"f/in"), "s": ("symlink", b"d"), "t": ("symlink", b"e"), "u": ("file", b"to be a folder"),
    "v": FOLDER, "v/w": ("file", b"in a folder that is to be a file"), "data": FOLDER,
    "data/kept": ("file", b"volume"), "l": ("symlink", b"d/a"), "m": ("link", b"l"),
}  # fmt: skip
UPPER = {
    "d": FOLDER, "d/a": ("file", b"upper"), "e": FOLDER, "e/.wh.x": GONE, "f": FOLDER, "f/.wh..wh..opq": GONE,
    "f/new": ("file", b"new"), "t": FOLDER, "t/in": ("file", b"t"), "u": FOLDER, "u/in": ("file", b"u"),
    "v": ("file", b"v"), ".wh.l": GONE,
}  # fmt: skip
TOP = {
    "d": FOLDER,
    "d/.wh.b": GONE,
    "d/z": ("file", b"top"),
    "d/zz": ("link", b"d/z"),
    "f": FOLDER,
    "f/in": ("file", b"again"),
}
NEW: Entry = ("file", b"new")
CASES = {
    "one layer": (LOWER,), "changed and removed": (LOWER, UPPER), "three layers": (LOWER, UPPER, TOP),
    "target gone": (LOWER, {"d": FOLDER, "d/a": NEW, "d/n": ("link", b"d/a")}, {"d/.wh.a": GONE, "d": FOLDER}),
}  # fmt: skip
"""Not an opaque root folder: overlay2 leaves what is below that, against the specification."""


@pytest.fixture(scope="module")
def own() -> Iterator[Engine]:
    with open_run(RUN) as run, engine(run, LocalHost(run.id)) as made:
        yield made


def tree(folder: Path) -> dict[str, Any]:
    """What is in a folder: of each name its type, mode, owner, content, and the first name that shares its inode."""
    inodes: dict[int, str] = {}
    found = {}
    for path in sorted(folder.rglob("*")):
        about, name = path.lstat(), str(path.relative_to(folder))
        content = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(os.fsencode(content) if isinstance(content, Path) else content).hexdigest()
        shares = inodes.setdefault(about.st_ino, name)
        may = os.getxattr(path, "security.capability") if "security.capability" in _attributes(path) else b""
        found[name] = (stat.S_IFMT(about.st_mode), stat.S_IMODE(about.st_mode), about.st_uid, digest, shares, may)
    return found


def _attributes(path: Path) -> list[str]:
    return os.listxattr(path, follow_symlinks=False)


def engines_tree(client: Any, tag: str, place: Path) -> dict[str, Any]:
    """What a container of the image sees, but for what the engine makes in each."""
    container = client.containers.create(tag, ["/none"], network="none", labels={LABEL: RUN})
    try:
        (place / "engine.tar").write_bytes(b"".join(container.export()))
    finally:
        container.remove(force=True, v=True)
    (place / "engine").mkdir()
    keep = ("--same-permissions", "--numeric-owner", "--xattrs", "--xattrs-include=security.capability")
    subprocess.run(["tar", "-x", "-f", place / "engine.tar", "-C", place / "engine", *keep], check=True)
    found = tree(place / "engine")
    assert any(each[-1] == CAPABILITY for each in found.values())
    return found


@pytest.mark.parametrize("case", CASES)
def test_they_are_those_that_the_engine_makes_of_it(own: Engine, case: str, tmp_path: Path, monkeypatch):
    tag = f"weighbridge:{RUN}-{case.replace(' ', '-')}"
    saved = image_archive(tag, {LABEL: RUN}, "amd64", [layer(each) for each in CASES[case]])
    own.client.images.load(saved)
    wanted = engines_tree(own.client, tag, tmp_path)
    (tmp_path / "saved.tar").write_bytes(saved)
    monkeypatch.setattr(image, "client_from_environment", lambda: _Kept(own.client))
    before = {each.id for each in own.client.containers.list(all=True)}
    ways = {
        "saved": (saved_image.PLUGIN, saved_image.SavedImageOptions(path=str(tmp_path / "saved.tar"))),
        "engine": (image.PLUGIN, image.ImageOptions(image=tag)),
    }
    for name, (plugin, options) in ways.items():
        work = tmp_path / name / "work"
        work.mkdir(parents=True)
        plugin.build(options, SPEC, work, tmp_path, print)
        assert [path.name for path in work.iterdir()] == [archive.NAME]
        root.unpack(work / archive.NAME, work / "root")
        found = tree(work / "root")
        own_folders = {each.partition("/")[0] for each in set(found) ^ set(wanted)}
        assert own_folders <= {"dev", "etc", "proc", "sys", ".dockerenv", *root.MOUNT_POINTS}, name
        both = (set(found) & set(wanted)) - {"etc/hosts"}  # which an engine makes in each container
        assert {each: found[each] for each in both} == {each: wanted[each] for each in both}
    assert {each.id for each in own.client.containers.list(all=True)} == before


class _Kept:
    """The engine's client, which the test goes on using."""

    def __init__(self, client: Any) -> None:
        self.api, self.images = client.api, client.images

    def close(self) -> None:
        """Leave it open."""
