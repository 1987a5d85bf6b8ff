"""An image as ``docker save`` writes it, which needs no engine."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.model.command import ProcessDefaults
from weighbridge.model.options import ABSOLUTE, External
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import SourceOptions, UserlandSource
from weighbridge.userland.products import archive
from weighbridge.userland.sources import _image_archive
from weighbridge.userland.sources._image_process import process_of


class SavedImageOptions(SourceOptions):
    """``path`` is an archive of one image, or of several, of which the first is used."""

    kind: Literal["saved-image"] = "saved-image"
    path: Annotated[str, Field(min_length=1, description="A docker save archive"), ABSOLUTE, External.FILE]


class SavedImage(UserlandSource):
    """The source that merges the layers of an archive once."""

    kind = "saved-image"
    summary = "an image from a docker save archive"
    options = SavedImageOptions

    def key(self, options: Any, spec: UserlandSpec) -> str:
        """Return a key by the digest of the image's configuration, which contains the digests of its layers."""
        with _image_archive.opened(options.path) as image:
            return hashlib.sha256(f"saved image 2 {image.digest}".encode()).hexdigest()[:16]

    def process(self, options: Any, root: Path) -> ProcessDefaults:
        """Return Env, WorkingDir and User of its configuration."""
        with _image_archive.opened(options.path) as image:
            return process_of(image.config, root)

    def entry_point(self, options: Any) -> tuple[str, ...]:
        """Return Entrypoint of its configuration."""
        with _image_archive.opened(options.path) as image:
            return image.entry_point

    def default_command(self, options: Any) -> tuple[str, ...]:
        """Return Cmd of its configuration."""
        with _image_archive.opened(options.path) as image:
            return image.default_command

    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        """Merge the layers of the image."""
        say(f"unpacking the image in {options.path}")
        _image_archive.unpack(options.path, work / archive.NAME)
        return {}


PLUGIN = SavedImage()
