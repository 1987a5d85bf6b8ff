"""The layers of an image laid over one another (OCI Image Specification, layer), as an engine's storage driver does.

A hard link is a file like any other once its layer is unpacked: what layers above do to one of its names leaves the
others, with what they hold.
"""

import posixpath
import tarfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass

_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
"""What a layer removes of those below it: a name, or all of a folder."""
_OF_THIS_MEMBER = ("path", "linkpath", "size", "GNU.sparse.")
"""How those of a member's extended headers (pax(1)) begin that would go before what it is given."""

OpenLayer = Callable[[int], AbstractContextManager[tarfile.TarFile]]


@dataclass(frozen=True, slots=True)
class _Names:
    """What a layer has, by type, what it removes by name, and the folders of which it removes all."""

    files: frozenset[str]
    folders: frozenset[str]
    removed: frozenset[str]
    emptied: frozenset[str]

    def hides(self, name: str, *, folder: bool) -> bool:
        """Whether what a layer below it has at ``name`` is gone. Two folders of one name are merged."""
        if name in self.files or name in self.removed or (name in self.folders and not folder):
            return True
        return any(
            each in self.files or each in self.removed or each in self.emptied for each in _parent_folders(name)
        )


@dataclass(slots=True)
class _Content:
    """What names of a layer share: the member that holds it, and the name under which it has been written."""

    number: int
    member: tarfile.TarInfo
    written: str | None = None


def write_merged(layer: OpenLayer, count: int, merged: tarfile.TarFile) -> None:
    """Write what is left of each of ``count`` layers under those above it, the lowest first.

    Raises KeyError where a hard link has no target.
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
            folders.update(_parent_folders(path))  # also where it has no member of its own
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
                old.written = None  # another name of it gets a copy
            content = contents[_plain(member.linkname)] if member.islnk() else _Content(number, member)
            contents[name] = content
            if not hidden:
                _write_content(layer, members, number, content, name, merged)


def _write_content(
    layer: OpenLayer, members: tarfile.TarFile, number: int, content: _Content, name: str, merged: tarfile.TarFile
) -> None:
    about = _copy_with_name(content.member, name)
    if content.written is not None:
        about.type, about.linkname, about.size = tarfile.LNKTYPE, f"./{content.written}", 0
        merged.addfile(about)
        return
    content.written = name
    if not content.member.isreg():
        merged.addfile(about)
    elif content.number == number:
        merged.addfile(about, members.extractfile(content.member))
    else:
        with layer(content.number) as below:
            merged.addfile(about, below.extractfile(content.member))


def _copy_with_name(member: tarfile.TarInfo, name: str) -> tarfile.TarInfo:
    """A copy of a member for a whole file of this name."""
    about = copy(member)
    about.name = f"./{name}"
    if member.issparse():  # what is read of it has its holes
        about.type = tarfile.REGTYPE
    headers = member.pax_headers.items()
    about.pax_headers = {key: value for key, value in headers if not key.startswith(_OF_THIS_MEMBER)}
    return about


def _plain(name: str) -> str:
    """A path in a layer without what leads out of it, or nowhere: ``./usr//bin`` is ``usr/bin``."""
    return posixpath.normpath(f"/{name}").lstrip("/")


def _parent_folders(name: str) -> Iterator[str]:
    while name := posixpath.dirname(name):
        yield name
    yield ""
