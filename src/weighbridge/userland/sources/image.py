"""A Docker image of the user's, by the digest that the engine has."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.engines.client import client_from_environment, engine_errors, quietly
from weighbridge.errors import Unavailable, UserlandError
from weighbridge.model.by_hand import Recipe
from weighbridge.model.command import ProcessDefaults
from weighbridge.model.source_options import SourceOptions
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import UserlandSource
from weighbridge.userland.products import archive


class ImageOptions(SourceOptions):
    """``image`` is a name or an id that the engine knows; it is not pulled."""

    kind: Literal["image"] = "image"
    image: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,254}$", description="Its name or its id")]


class Image(UserlandSource):
    """Its files are exported once from a container that never runs."""

    kind = "image"
    summary = "an image that the user's Docker engine has"
    options = ImageOptions

    def key(self, options: Any, spec: UserlandSpec) -> str:
        """The engine's digest of the image: another image under the same name is another userland."""
        with _image(options.image) as (_, image):
            return hashlib.sha256(f"image with its process {image.id}".encode()).hexdigest()[:16]

    def process(self, options: Any, root: Path) -> ProcessDefaults:
        """Env, WorkingDir and User of its configuration (OCI Image Specification, config)."""
        with _image(options.image) as (_, image):
            return process_of(image.attrs.get("Config") or {}, root)

    def cannot_build(self, options: Any, spec: UserlandSpec, cache: Path) -> tuple[str, str] | None:
        """Without an engine there is no image."""
        if (client := client_from_environment()) is None:
            return "no Docker engine answers that could have an image", "start a Docker engine"
        client.close()
        return None

    def recipe(self, options: Any, spec: UserlandSpec) -> Recipe:
        """The image as it is."""
        return Recipe(base=options.image)

    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        """Export it."""
        say(f"exporting the image {options.image}")
        with _image(options.image) as (client, image):
            container = client.containers.create(image.id, ["true"], network="none")
            try:
                with (work / archive.NAME).open("wb") as tar:
                    for piece in container.export():
                        tar.write(piece)
            finally:
                quietly(container.remove, force=True)
        return {}


def entry_point(name: str) -> list[str]:
    """Return the words that come before those of a program in an image (OCI Image Specification, Entrypoint).

    Raises Unavailable where no engine answers that has the image.
    """
    with _image(name) as (_, image):
        return list((image.attrs.get("Config") or {}).get("Entrypoint") or ())


def process_of(config: Mapping[str, Any], root: Path) -> ProcessDefaults:
    """Return what an image's programs are started with. Raises UserlandError where it names a user that it lacks."""
    env = dict(each.partition("=")[::2] for each in config.get("Env") or ())
    user, _, group = str(config.get("User") or "").partition(":")
    if not user:
        return ProcessDefaults(env, config.get("WorkingDir") or "/")
    uid, gid = _user(user, root)
    return ProcessDefaults(env, config.get("WorkingDir") or "/", uid, _group(group, root) if group else gid)


def _user(name: str, root: Path) -> tuple[int, int]:
    """The numbers of a user and of its group, by the image's own passwd(5); of a number that is not in it 0."""
    for fields in _lines(root / "etc/passwd"):
        if len(fields) > 3 and name in (fields[0], fields[2]):
            return int(fields[2]), int(fields[3])
    if name.isdigit():
        return int(name), 0
    raise UserlandError(f"the image's programs run as user '{name}', who is not in its /etc/passwd")


def _group(name: str, root: Path) -> int:
    for fields in _lines(root / "etc/group"):
        if len(fields) > 2 and name in (fields[0], fields[2]):
            return int(fields[2])
    if name.isdigit():
        return int(name)
    raise UserlandError(f"the image's programs run as group '{name}', which is not in its /etc/group")


def _lines(path: Path) -> list[list[str]]:
    """The fields of each line. The file is the image's: a link leads nowhere else."""
    if not path.is_file() or path.is_symlink() or path.parent.is_symlink():
        return []
    lines = [line.split(":") for line in path.read_text(errors="replace").splitlines()]
    return [fields for fields in lines if all(number.isdigit() for number in fields[2:3])]


@contextmanager
def _image(name: str) -> Iterator[tuple[Any, Any]]:
    """The client of the engine that answers, and the image."""
    from docker.errors import ImageNotFound

    client = client_from_environment()
    if client is None:
        raise Unavailable(f"userland: no Docker engine answers that could have the image {name}: start it")
    with contextlib.closing(client), engine_errors(f"the image {name}"):
        try:
            image = client.images.get(name)
        except ImageNotFound as error:
            raise Unavailable(f"userland: the Docker engine has no image {name}: docker pull {name}") from error
        yield client, image


PLUGIN = Image()
