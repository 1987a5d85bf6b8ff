"""An image as `docker save` writes it: no engine is needed to have it."""

import contextlib
import gzip
import hashlib
import json
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from pydantic import Field

from weighbridge.errors import Unavailable, UserlandError
from weighbridge.model.command import ProcessDefaults
from weighbridge.model.options import ABSOLUTE, Brings
from weighbridge.model.source_options import SourceOptions
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import UserlandSource
from weighbridge.userland.products import archive
from weighbridge.userland.sources._image_process import process_of

_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
"""What a layer removes of those below it: a name, or all of a folder (OCI Image Specification, layer)."""
_NAMES = ("path", "linkpath")
"""Of a member's extended headers (pax(1)): they would go before its name."""
_DAMAGED = (
    tarfile.TarError, KeyError, IndexError, TypeError, ValueError, AttributeError, EOFError,
    gzip.BadGzipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
_LARGEST_JSON = 16 * 2**20


class SavedImageOptions(SourceOptions):
    """``path`` is an archive of one image; of several, the first is taken."""

    kind: Literal["saved-image"] = "saved-image"
    path: Annotated[str, Field(min_length=1, description="An archive of docker save"), ABSOLUTE, Brings.FILE]


class SavedImage(UserlandSource):
    """Its layers are laid over one another once."""

    kind = "saved-image"
    summary = "an image as docker save writes it"
    options = SavedImageOptions

    def key(self, options: Any, spec: UserlandSpec) -> str:
        """The digest of the image's configuration, which names its layers by theirs."""
        with _saved(options.path) as saved:
            return hashlib.sha256(f"saved image {saved.digest}".encode()).hexdigest()[:16]

    def process(self, options: Any, root: Path) -> ProcessDefaults:
        """Env, WorkingDir and User of its configuration."""
        with _saved(options.path) as saved:
            return process_of(saved.config, root)

    def entry_point(self, options: Any) -> tuple[str, ...]:
        """Entrypoint of its configuration."""
        with _saved(options.path) as saved:
            return saved.entry_point

    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        """Write what is left of each layer under those above it, the lowest first."""
        say(f"unpacking the image in {options.path}")
        with _saved(options.path) as saved, tarfile.open(work / archive.NAME, "w", format=tarfile.PAX_FORMAT) as made:
            seen = [_names(saved, number) for number in range(len(saved.layers))]
            for number in range(len(saved.layers)):
                _write(saved, number, seen[number + 1 :], made)
        return {}


@dataclass(frozen=True, slots=True)
class Saved:
    """An open archive of an image: its configuration (OCI's ``config``), its layers, the lowest first."""

    archive: tarfile.TarFile
    digest: str
    config: Mapping[str, Any]
    entry_point: tuple[str, ...]
    layers: tuple[str, ...]

    def file(self, name: str) -> IO[bytes]:
        """A file of the archive. Raises KeyError."""
        found = self.archive.extractfile(name)
        if found is None:
            raise KeyError(name)
        return found


@dataclass(frozen=True, slots=True)
class _Names:
    """What a layer has, what it removes by name, and the folders of which it removes all."""

    has: frozenset[str]
    removed: frozenset[str]
    emptied: frozenset[str]

    def hides(self, name: str) -> bool:
        """Whether what a layer below it has at ``name`` is no longer there."""
        if name in self.has or name in self.removed:
            return True
        return any(each in self.has or each in self.removed or each in self.emptied for each in _above(name))


@contextmanager
def _saved(path: str) -> Iterator[Saved]:
    try:
        with tarfile.open(path) as opened:
            manifest = json.loads(_text(opened, "manifest.json"))[0]
            text = _text(opened, manifest["Config"])
            config = json.loads(text).get("config") or {}
            digest, entry = hashlib.sha256(text).hexdigest(), tuple(config.get("Entrypoint") or ())
            layers = tuple(str(layer) for layer in manifest["Layers"])
            yield Saved(opened, digest, config, entry, layers)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise Unavailable(f"userland: the image {path} cannot be read: {error.strerror}") from error
    except _DAMAGED as error:
        why = f"{path} is no image of docker save, or a damaged one ({type(error).__name__})"
        raise UserlandError(f"userland: {why}: docker save -o FILE IMAGE") from error


def _text(opened: tarfile.TarFile, name: str) -> bytes:
    file = opened.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file.read(_LARGEST_JSON)


@contextmanager
def _layer(saved: Saved, number: int) -> Iterator[tarfile.TarFile]:
    with contextlib.closing(saved.file(saved.layers[number])) as file, tarfile.open(fileobj=file) as layer:
        yield layer


def _names(saved: Saved, number: int) -> _Names:
    has, removed, emptied = set(), set(), set()
    with _layer(saved, number) as layer:
        for member in layer:
            folder, name = posixpath.split(_plain(member.name))
            if name == _OPAQUE:
                emptied.add(folder)
            elif name.startswith(_WHITEOUT):
                removed.add(posixpath.join(folder, name[len(_WHITEOUT) :]))
            elif not member.isdir():
                has.add(_plain(member.name))
    return _Names(frozenset(has), frozenset(removed), frozenset(emptied))


def _write(saved: Saved, number: int, above: list[_Names], made: tarfile.TarFile) -> None:
    with _layer(saved, number) as layer:
        for member in layer:
            name = _plain(member.name)
            if not name or posixpath.basename(name).startswith(_WHITEOUT) or any(each.hides(name) for each in above):
                continue
            member.name = f"./{name}"
            member.pax_headers = {key: value for key, value in member.pax_headers.items() if key not in _NAMES}
            if member.islnk():
                member.linkname = f"./{_plain(member.linkname)}"
            made.addfile(member, layer.extractfile(member) if member.isreg() else None)


def _plain(name: str) -> str:
    """A path in a layer without what leads out of it, or nowhere: ``./usr//bin`` is ``usr/bin``."""
    return posixpath.normpath(f"/{name}").lstrip("/")


def _above(name: str) -> Iterator[str]:
    while name := posixpath.dirname(name):
        yield name
    yield ""


PLUGIN = SavedImage()
