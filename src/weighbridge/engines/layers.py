"""An image of small layers for ``docker load``, with one layer that only stands for a folder of the host.

Unpacking a root filesystem takes five seconds, and minutes on an emulated CPU. If the host already has its files,
their folder replaces the layer's folder, which the storage driver overlay2 only ever reads. All engines of a testbed
then share one copy.
"""

import hashlib
import io
import json
import random
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weighbridge.errors import Unavailable
from weighbridge.model.command import Command
from weighbridge.model.host import Host

_MOUNT_S = 60.0
_FILE = 2**20
_END = b"\0" * 2 * tarfile.BLOCKSIZE


def executable(path: str, content: bytes) -> bytes:
    """Return an executable file as the beginning of an archive (tar(5)), behind which others can follow."""
    about = tarfile.TarInfo(path.lstrip("/"))
    about.size, about.mode = len(content), 0o755
    return about.tobuf(tarfile.GNU_FORMAT) + content + b"\0" * (-len(content) % tarfile.BLOCKSIZE)


def file_layer(path: str, content: bytes) -> bytes:
    """Return an archive of a layer with one executable file."""
    return executable(path, content) + _END


def random_files(size: int) -> Iterator[bytes]:
    """Yield the beginning of an archive with files of ``size`` bytes together, behind which others can follow.

    Each file has 1 MiB, and the last one the rest. The contents are pseudorandom, with the file's number as the seed:
    they are the same in each run, no two files are equal, and none compresses.
    """
    for number, start in enumerate(range(0, size, _FILE)):
        about = tarfile.TarInfo(f"weighbridge-files/{number:04d}")
        about.size, about.mode = min(_FILE, size - start), 0o644
        content = random.Random(number).randbytes(about.size)  # noqa: S311 - not secret
        yield about.tobuf(tarfile.GNU_FORMAT) + content + b"\0" * (-about.size % tarfile.BLOCKSIZE)


def image_archive(
    tag: str, labels: Mapping[str, str], architecture: str, layers: Sequence[bytes], command: Sequence[str] = ()
) -> bytes:
    """Return an image with these layers, the lowest one first (Docker Image Specification v1.2).

    ``command`` is the default command of a container.
    """
    about_containers = {"Labels": dict(labels)} | ({"Cmd": [*command]} if command else {})
    sums = [hashlib.sha256(layer).hexdigest() for layer in layers]
    config = json.dumps(
        {
            "architecture": architecture, "os": "linux", "config": about_containers,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each}" for each in sums]},
        }
    ).encode()  # fmt: skip
    about = {"Config": "config.json", "RepoTags": [tag], "Layers": [f"{each}/layer.tar" for each in sums]}
    files = {"config.json": config, "manifest.json": json.dumps([about]).encode()}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in (*files.items(), *zip(about["Layers"], layers, strict=True)):
            member = tarfile.TarInfo(str(name))
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def lower_layer(image: Any) -> str | None:
    """Return the folder of the lower of an image's two layers; None if its engine does not use overlay2."""
    lower = ((image.attrs.get("GraphDriver") or {}).get("Data") or {}).get("LowerDir")
    return None if lower is None else str(lower)


def folder_as_layer(host: Host, lower: str, folder: str) -> None:
    """Use a folder of the host in place of a `lower_layer`. Raises Unavailable.

    It is read-only, because the engine could otherwise remove the host's files together with the layer.
    """
    completed = host.run(Command(("mount", "-o", "bind,ro", folder, lower), _MOUNT_S))
    if completed.returncode != 0:
        raise Unavailable(
            f"host {host.name}: the root filesystem cannot become a layer of an image: {completed.last_words}"
        )
