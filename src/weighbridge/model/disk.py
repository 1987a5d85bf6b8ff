"""A disk that is made for a site's storage: which file system, and how large."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from weighbridge.model.options import Options
from weighbridge.model.quantity import Size


class DiskOptions(Options):
    """A file system of its own in a sparse file on the host's disk, by a loop device past its page cache.

    ``size`` is in bytes.
    """

    filesystem: Annotated[
        Literal["ext4", "xfs", "btrfs"],
        Field(description="Its kind, with mkfs's defaults but for ext4: whole from the start, nothing kept for root"),
    ]
    size: Annotated[Size, Field(ge=512 * 2**20, le=2**44, description="How much it holds; the file is sparse")] = (
        2**32
    )

    def __str__(self) -> str:
        """What it is, for facts."""
        by = "by a loop device past its page cache"
        return f"{self.filesystem} of {self.size / 2**30:g} GiB in a file on the host's disk, {by}"

    @property
    def purpose(self) -> str:
        """A name for a host whose engine is on it."""
        return f"{self.filesystem}-{self.size >> 20}"


def _from_name(given: Any) -> Any:
    return {"filesystem": given} if isinstance(given, str) else given


Disk = Annotated[
    DiskOptions | None,
    BeforeValidator(_from_name, json_schema_input_type=DiskOptions | Literal["ext4", "xfs", "btrfs"] | None),
    Field(description="A file system made for it; by default it is on the host's own disk"),
]
"""``disk: xfs``, or ``disk: {filesystem: xfs, size: 8GiB}``."""
