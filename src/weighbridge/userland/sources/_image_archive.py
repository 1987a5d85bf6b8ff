"""An image as ``docker save`` writes it: an archive of its configuration and its layers."""

import contextlib
import gzip
import hashlib
import json
import lzma
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.errors import Unavailable, UserlandError
from weighbridge.userland.sources._image_layers import write_merged

_DAMAGED = (
    tarfile.TarError, KeyError, IndexError, TypeError, ValueError, AttributeError, EOFError,
    gzip.BadGzipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
_LARGEST_JSON = 16 * 2**20


@dataclass(frozen=True, slots=True)
class ImageArchive:
    """An open archive of an image: its configuration (OCI's ``config``) and its layers, the lowest first."""

    archive: tarfile.TarFile
    digest: str
    config: Mapping[str, Any]
    layers: tuple[str, ...]

    @property
    def entry_point(self) -> tuple[str, ...]:
        """Return the words before the words of a program."""
        return tuple(self.config.get("Entrypoint") or ())

    @property
    def default_command(self) -> tuple[str, ...]:
        """Return the words after the entry point, unless the user gives others."""
        return tuple(self.config.get("Cmd") or ())

    @contextmanager
    def layer(self, number: int) -> Iterator[tarfile.TarFile]:
        """Open a layer; the lowest is 0."""
        file = self.archive.extractfile(self.layers[number])
        if file is None:
            raise KeyError(self.layers[number])
        with contextlib.closing(file), tarfile.open(fileobj=file) as layer:
            yield layer


@contextmanager
def opened(path: str) -> Iterator[ImageArchive]:
    """Open an archive of one image, or the first of several.

    Raises Unavailable if it is unreadable, UserlandError if it is invalid or damaged, also while it is read.
    """
    try:
        with tarfile.open(path) as archive:
            manifest = json.loads(_text(archive, "manifest.json"))[0]
            text = _text(archive, manifest["Config"])
            config = json.loads(text).get("config") or {}
            layers = tuple(str(layer) for layer in manifest["Layers"])
            yield ImageArchive(archive, hashlib.sha256(text).hexdigest(), config, layers)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise Unavailable(f"userland: the image {path} cannot be read: {error.strerror}") from error
    except _DAMAGED as error:
        reason = f"{path} is not an archive from docker save, or is damaged ({type(error).__name__})"
        raise UserlandError(f"userland: {reason}. Try: docker save -o FILE IMAGE") from error


def unpack(path: str, tar: Path) -> None:
    """Write the files of a saved image as one archive. Raises the errors of `opened`."""
    with opened(path) as image, tarfile.open(tar, "w", format=tarfile.PAX_FORMAT) as merged:
        write_merged(image.layer, len(image.layers), merged)


def _text(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file.read(_LARGEST_JSON)
