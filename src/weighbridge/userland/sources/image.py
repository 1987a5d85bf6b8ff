"""An image in the user's Docker engine, by the engine's digest."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.engines.client import client_from_environment, engine_errors, readiness
from weighbridge.errors import Unavailable
from weighbridge.model.by_hand import Recipe
from weighbridge.model.command import ProcessDefaults
from weighbridge.model.options import External
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import SourceOptions, UserlandSource
from weighbridge.userland.commands import BUILD_DEADLINE_S
from weighbridge.userland.products import archive
from weighbridge.userland.sources import _image_archive
from weighbridge.userland.sources._image_process import process_of

_SAVED = "saved.tar"


class ImageOptions(SourceOptions):
    """``image`` is a name or an id that the engine knows; it is not pulled."""

    kind: Literal["image"] = "image"
    image: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,254}$", description="Image name or id"), External.IMAGE
    ]


class Image(UserlandSource):
    """The source that reads an image's files once, as the engine saves them."""

    kind = "image"
    summary = "an image in your Docker engine"
    options = ImageOptions
    from_registry = True

    def reference(self, options: Any) -> str:
        """Return one of its RepoDigests in the engine, if possible from the repository in its name."""
        with _image(options.image) as (_, image):
            digests: list[str] = sorted(image.attrs.get("RepoDigests") or ())
        named = options.image.partition("@")[0]
        repository = named.rpartition(":")[0] if ":" in named.rpartition("/")[2] else named
        return next((each for each in digests if each.partition("@")[0] == repository), [*digests, ""][0])

    def key(self, options: Any, spec: UserlandSpec) -> str:
        """Return a key by the engine's digest: another image of the same name is another root filesystem."""
        with _image(options.image) as (_, image):
            return hashlib.sha256(f"image 2 {image.id}".encode()).hexdigest()[:16]

    def process(self, options: Any, root: Path) -> ProcessDefaults:
        """Return Env, WorkingDir and User of its configuration (OCI Image Specification, config)."""
        with _image(options.image) as (_, image):
            return process_of(image.attrs.get("Config") or {}, root)

    def entry_point(self, options: Any) -> tuple[str, ...]:
        """Return Entrypoint of its configuration."""
        with _image(options.image) as (_, image):
            return tuple((image.attrs.get("Config") or {}).get("Entrypoint") or ())

    def default_command(self, options: Any) -> tuple[str, ...]:
        """Return Cmd of its configuration."""
        with _image(options.image) as (_, image):
            return tuple((image.attrs.get("Config") or {}).get("Cmd") or ())

    def cannot_build(self, options: Any, spec: UserlandSpec, cache: Path) -> tuple[str, str] | None:
        """Return why there is no engine to read the image from, and a remedy."""
        if (client := client_from_environment()) is None:
            remedy = readiness().remedy or "start a Docker engine"
            return "no Docker engine answers, so no image can be read", remedy
        client.close()
        return None

    def recipe(self, options: Any, spec: UserlandSpec) -> Recipe:
        """Return a recipe that uses the image unchanged."""
        return Recipe(base=options.image)

    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        """Save it with the engine, without a container; folders that the image declares as volumes are included."""
        say(f"reading the image {options.image}")
        saved = work / _SAVED
        with _image(options.image) as (client, image):
            client.api.timeout = BUILD_DEADLINE_S  # an engine assembles everything before it sends a byte
            with saved.open("wb") as tar:
                for piece in image.save():
                    tar.write(piece)
        _image_archive.unpack(str(saved), work / archive.NAME)
        saved.unlink()
        return {}


@contextmanager
def _image(name: str) -> Iterator[tuple[Any, Any]]:
    from docker.errors import ImageNotFound

    client = client_from_environment()
    if client is None:
        problem = f"no Docker engine answers, so the image {name} cannot be read"
        raise Unavailable(
            f"userland: {problem} (Weighbridge's private engine has no images). Start one, or name a docker save file"
        )
    with contextlib.closing(client), engine_errors(f"the image {name}"):
        try:
            image = client.images.get(name)
        except ImageNotFound as error:
            raise Unavailable(f"userland: the Docker engine has no image {name}: docker pull {name}") from error
        yield client, image


PLUGIN = Image()
