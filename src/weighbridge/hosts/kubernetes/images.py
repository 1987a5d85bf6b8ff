"""Images for pods, made without an engine, and brought to a node by the command that the user names."""

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.engines.layers import file_layer
from weighbridge.errors import Unavailable
from weighbridge.hosts.kubernetes.objects import LAUNCHER
from weighbridge.linux.process import Process
from weighbridge.model.command import Command
from weighbridge.model.userland import Userland

LOAD_S = 1800.0
_PIECE = 2**20
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_REPOSITORY = "docker.io/weighbridge"


@dataclass(frozen=True, slots=True)
class Image:
    """An image of one layer: ``layer`` is an archive's file, or its bytes. ``reference``: as pods name it."""

    reference: str
    layer: Path | bytes

    @property
    def size(self) -> int:
        """Bytes of its layer."""
        return len(self.layer) if isinstance(self.layer, bytes) else self.layer.stat().st_size

    def pieces(self) -> Iterator[bytes]:
        """Yield its layer in pieces."""
        if isinstance(self.layer, bytes):
            yield self.layer
            return
        with self.layer.open("rb") as data:
            yield from iter(lambda: data.read(_PIECE), b"")


def launcher_image(program: bytes) -> Image:
    """Return an image that holds nothing but the launcher: of the pods by which a node is seen."""
    return Image(f"{_REPOSITORY}/launcher:{hashlib.sha256(program).hexdigest()[:16]}", file_layer(LAUNCHER, program))


def userland_image(userland: Userland) -> Image:
    """Return a userland's image. Raises Unavailable where it is this machine's own root folder."""
    return Image(f"{_REPOSITORY}/userland:{userland.digest[:16]}", userland.archive())


def archive(image: Image, machine: str) -> Iterator[bytes]:
    """Yield an image's archive in pieces, as ``ctr images import`` and ``docker load`` take it (image-spec v1.2)."""
    digest = hashlib.sha256()
    for piece in image.pieces():
        digest.update(piece)
    layer = digest.hexdigest()
    config = json.dumps({
        "architecture": _ARCHITECTURES.get(machine, machine), "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
    }).encode()  # fmt: skip
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    about = [{"Config": config_name, "RepoTags": [image.reference], "Layers": [f"{layer}/layer.tar"]}]
    yield from _member(config_name, len(config), [config])
    manifest = json.dumps(about).encode()
    yield from _member("manifest.json", len(manifest), [manifest])
    yield from _member(f"{layer}/layer.tar", image.size, image.pieces())
    yield b"\0" * 2 * tarfile.BLOCKSIZE


def _member(name: str, size: int, pieces: Iterator[bytes] | Sequence[bytes]) -> Iterator[bytes]:
    about = tarfile.TarInfo(name)
    about.size = size
    yield about.tobuf(tarfile.GNU_FORMAT)
    yield from pieces
    yield b"\0" * (-size % tarfile.BLOCKSIZE)


def load(image: Image, machine: str, command: Sequence[str]) -> None:
    """Bring an image to a node: the command gets its archive on its standard input. Raises Unavailable."""
    process = Process(Command(tuple(command), LOAD_S), hold=True)
    try:
        buffer = io.BytesIO()
        for piece in archive(image, machine):
            buffer.write(piece)
            if buffer.tell() >= _PIECE:
                process.send(buffer.getvalue())
                buffer = io.BytesIO()
        process.send(buffer.getvalue())
        process.end_input()
        ended = process.wait(LOAD_S)
    except OSError:
        ended = process.wait(LOAD_S)
    finally:
        done = process.stop(timed_out=False)
    if not ended or done.returncode != 0:
        raise Unavailable(f"the image {image.reference} cannot be loaded: {command[0]}: {done.last_words}")
