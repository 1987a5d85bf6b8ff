"""Images for pods, made without an engine."""

import hashlib
import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.engines.layers import file_layer
from weighbridge.features.kubernetes.objects import LAUNCHER
from weighbridge.model.userland import Userland

_PIECE = 2**20
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
REPOSITORY = "docker.io/weighbridge"


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """An image of one layer: ``layer`` is an archive's file, or its bytes.

    Its reference consists of ``name`` (``userland``) and ``content``, a digest of 16 digits.
    """

    name: str
    content: str
    layer: Path | bytes

    @property
    def reference(self) -> str:
        """Return its name on nodes that it is loaded onto."""
        return f"{REPOSITORY}/{self.name}:{self.content}"

    def pushed_to(self, repository: str) -> str:
        """Return its name in a repository of a registry."""
        return f"{repository}:{self.name}-{self.content}"

    @property
    def size(self) -> int:
        """Return the bytes of its layer."""
        return len(self.layer) if isinstance(self.layer, bytes) else self.layer.stat().st_size

    def pieces(self) -> Iterator[bytes]:
        """Yield its layer in pieces."""
        if isinstance(self.layer, bytes):
            yield self.layer
            return
        with self.layer.open("rb") as data:
            yield from iter(lambda: data.read(_PIECE), b"")


def launcher_image(program: bytes) -> ClusterImage:
    """Return an image that only contains the launcher, for the pods that represent a node."""
    return ClusterImage("launcher", hashlib.sha256(program).hexdigest()[:16], file_layer(LAUNCHER, program))


def userland_image(userland: Userland) -> ClusterImage:
    """Return a root filesystem's image. Raises Unavailable if it is this machine's own."""
    return ClusterImage("userland", userland.digest[:16], userland.archive())


def archive(image: ClusterImage, machine: str, reference: str = "") -> Iterator[bytes]:
    """Yield an image's archive in pieces for ``ctr images import`` and ``docker load`` (image-spec v1.2).

    ``reference`` is its name in the archive; "" means its name on nodes.
    """
    digest = hashlib.sha256()
    for piece in image.pieces():
        digest.update(piece)
    layer = digest.hexdigest()
    config = json.dumps({
        "architecture": _ARCHITECTURES.get(machine, machine), "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
    }).encode()  # fmt: skip
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    entries = [{"Config": config_name, "RepoTags": [reference or image.reference], "Layers": [f"{layer}/layer.tar"]}]
    yield from _member(config_name, len(config), [config])
    manifest = json.dumps(entries).encode()
    yield from _member("manifest.json", len(manifest), [manifest])
    yield from _member(f"{layer}/layer.tar", image.size, image.pieces())
    yield b"\0" * 2 * tarfile.BLOCKSIZE


def _member(name: str, size: int, pieces: Iterator[bytes] | Sequence[bytes]) -> Iterator[bytes]:
    header = tarfile.TarInfo(name)
    header.size = size
    yield header.tobuf(tarfile.GNU_FORMAT)
    yield from pieces
    yield b"\0" * (-size % tarfile.BLOCKSIZE)
