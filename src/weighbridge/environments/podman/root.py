"""This machine's own root folder in a user's rootless container: bound into it, read-only, with the user's rights."""

import os
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

from weighbridge.engines.podman import Podman, memory_of
from weighbridge.engines.shared_root import bound
from weighbridge.errors import Unavailable
from weighbridge.model.environment import Needs
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import SiteRequest


def unmet(needs: Needs, *, rootless: bool) -> Readiness | None:
    """Return why a container cannot use this machine's root folder, or None if it can or does not need it."""
    if not needs.of_this_machine or (rootless and os.geteuid() != 0):
        return None
    why = "only rootless podman of an ordinary user can run this machine's own programs"
    return Readiness(False, why, "give --image, use docker, or run as an ordinary user with podman-rootless")


def root_words(stack: ExitStack, podman: Podman, request: SiteRequest, others: Collection[str] = ()) -> list[str]:
    """Return the arguments of ``podman create`` that give a container this machine's files; none of a built userland.

    Each mount is bound with those below it, which a user cannot leave out (mount_namespaces(7)), and those are bound
    again, read-only; not at ``others``, where it has something else. The user is the same inside as outside. Raises
    Unavailable.
    """
    userland = request.userland
    if not userland.of_this_machine:
        return []
    words = ["--userns", "keep-id", "--user", f"{os.geteuid()}:{os.getegid()}"]
    words += ["--group-add", "keep-groups"] if Path(podman.runtime).name == "crun" else []
    for path in bound(userland.root, others):
        if {*str(path)} & {*',"'}:
            raise Unavailable(f"podman cannot mount a path with a comma or a quote: rename {path}")
        words += ["--mount", f"type=bind,src={path},dst={path},ro=true"]
    return words + (_layer(stack, podman, request, Path(userland.layered)) if userland.layered else [])


def _layer(stack: ExitStack, podman: Podman, request: SiteRequest, folder: Path) -> list[str]:
    """Return the mount of a layer in memory over a folder, which stays unchanged."""
    layer_folder = memory_of(request.run.id, request.name)
    try:
        layer_folder.mkdir(mode=0o700)
    except OSError as error:
        raise Unavailable(f"the folder in memory {layer_folder} cannot be created: {error.strerror}") from None
    stack.callback(
        podman.ask, "unshare", "rm", "-rf", str(layer_folder)
    )  # the kernel's own folder in it is a subordinate id's
    for name in ("upper", "work"):
        (layer_folder / name).mkdir()
    (layer_folder / "upper").chmod(folder.stat().st_mode & 0o7777)
    return ["--volume", f"{folder}:{folder}:O,upperdir={layer_folder}/upper,workdir={layer_folder}/work"]
