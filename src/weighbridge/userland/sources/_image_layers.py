"""Merges the layers of an image (OCI Image Specification, layer), as an engine's storage driver does.

A hard link is an ordinary file once its layer is unpacked: if a layer above changes one of its names, the others keep
their content.
"""

import posixpath
import tarfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass

_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
"""The marks with which a layer removes a name, or all of a folder, from the layers below."""
_OF_THIS_MEMBER = ("path", "linkpath", "size", "GNU.sparse.")
"""The prefixes of extended headers (pax(1)) that would override the new values of a member."""

OpenLayer = Callable[[int], AbstractContextManager[tarfile.TarFile]]


@dataclass(frozen=True, slots=True)
class _Names:
    """The names in a layer by type, the names that it removes, and the folders that it empties."""

    files: frozenset[str]
    folders: frozenset[str]
    removed: frozenset[str]
    emptied: frozenset[str]

    def hides(self, name: str, *, folder: bool) -> bool:
        """Return whether ``name`` of a layer below is hidden. Two folders of one name are merged."""
        if name in self.files or name in self.removed or (name in self.folders and not folder):
            return True
        return any(
            each in self.files or each in self.removed or each in self.emptied for each in _parent_folders(name)
        )


@dataclass(slots=True)
class _Content:
    """The content that names of a layer share: its member, and the first name under which it was written."""

    number: int
    member: tarfile.TarInfo
    written: str | None = None


def write_merged(layer: OpenLayer, count: int, merged: tarfile.TarFile) -> None:
    """Write the visible entries of ``count`` layers, the lowest first.

    Raises KeyError if a hard link has no target.
    """
    names = [_names(layer, number) for number in range(count)]
    contents: dict[str, _Content] = {}
    for number in range(count):
        _write(layer, number, names[number + 1 :], contents, merged)


def _names(layer: OpenLayer, number: int) -> _Names:
    files, folders, removed, emptied = (set[str]() for _ in range(4))
    with layer(number) as members:
        for member in members:
            path = _plain(member.name)
            folder, name = posixpath.split(path)
            folders.update(_parent_folders(path))  # also without a member of its own
            if name == _OPAQUE:
                emptied.add(folder)
            elif name.startswith(_WHITEOUT):
                removed.add(posixpath.join(folder, name[len(_WHITEOUT) :]))
            else:
                (folders if member.isdir() else files).add(path)
    return _Names(frozenset(files), frozenset(folders - files), frozenset(removed), frozenset(emptied))


def _write(
    layer: OpenLayer, number: int, above: list[_Names], contents: dict[str, _Content], merged: tarfile.TarFile
) -> None:
    with layer(number) as members:
        for member in members:
            name = _plain(member.name)
            if not name or posixpath.basename(name).startswith(_WHITEOUT):
                continue
            hidden = any(each.hides(name, folder=member.isdir()) for each in above)
            if member.isdir():
                contents.pop(name, None)
                if not hidden:
                    merged.addfile(_copy_with_name(member, name))
                continue
            old = contents.pop(name, None)
            if old is not None and old.written == name:
                old.written = None  # its other names get a copy
            content = contents[_plain(member.linkname)] if member.islnk() else _Content(number, member)
            contents[name] = content
            if not hidden:
                _write_content(layer, members, number, content, name, merged)


def _write_content(
    layer: OpenLayer, members: tarfile.TarFile, number: int, content: _Content, name: str, merged: tarfile.TarFile
) -> None:
    header = _copy_with_name(content.member, name)
    if content.written is not None:
        header.type, header.linkname, header.size = tarfile.LNKTYPE, f"./{content.written}", 0
        merged.addfile(header)
        return
    content.written = name
    if not content.member.isreg():
        merged.addfile(header)
    elif content.number == number:
        merged.addfile(header, members.extractfile(content.member))
    else:
        with layer(content.number) as below:
            merged.addfile(header, below.extractfile(content.member))


def _copy_with_name(member: tarfile.TarInfo, name: str) -> tarfile.TarInfo:
    """Return a copy of a member with this name, for its complete content."""
    header = copy(member)
    header.name = f"./{name}"
    if member.issparse():  # reading it includes the holes
        header.type = tarfile.REGTYPE
    headers = member.pax_headers.items()
    header.pax_headers = {key: value for key, value in headers if not key.startswith(_OF_THIS_MEMBER)}
    return header


def _plain(name: str) -> str:
    """Return a path in a layer, normalised so that it cannot leave it: ``./usr//bin`` is ``usr/bin``."""
    return posixpath.normpath(f"/{name}").lstrip("/")


def _parent_folders(name: str) -> Iterator[str]:
    while name := posixpath.dirname(name):
        yield name
    yield ""
