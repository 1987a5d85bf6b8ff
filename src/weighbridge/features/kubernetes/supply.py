"""The supply of pods' images to nodes: loaded by a command, pulled from a registry, or already present."""

import contextlib
import json
import os
import platform
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from weighbridge.engines.push import push, pushing_engine
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.kubernetes import volumes
from weighbridge.features.kubernetes.cleanup import places_of, runs_at
from weighbridge.features.kubernetes.images import ClusterImage, archive, launcher_image, userland_image
from weighbridge.features.kubernetes.kubectl import Denied, Exists, Kubectl
from weighbridge.features.kubernetes.notes import Notes
from weighbridge.features.kubernetes.objects import IMAGE_LABEL, RUN_LABEL, NodeInfo, has_ended, labels, object_name
from weighbridge.launcher import build
from weighbridge.linux import process
from weighbridge.linux.process import RUN_VARIABLE, feed
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RunFolders
from weighbridge.model.command import Command
from weighbridge.model.host import RunContext
from weighbridge.model.options import External, Options
from weighbridge.model.userland import Userland, Userlands
from weighbridge.user_cache import cache_folder

LOAD_S, REMOVE_S = 1800.0, 60.0
NODE_VARIABLE = "WEIGHBRIDGE_NODE"
"""The variable with the node for a command that loads or removes an image."""
_PUSHED = "pushed"
Word = Literal["kind", "minikube", "k3d", "containerd"]
_REPOSITORY = r"^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)+$"


@dataclass(frozen=True, slots=True)
class Tool:
    """The commands of a tool that made a cluster. ``contexts`` is the prefix of its contexts' names.

    ``everywhere``: an image is loaded onto all nodes at once. ``remove`` is None if the tool has no such command.
    """

    load: Callable[[str, str, str], tuple[str, ...]]
    """Returns the command for a file, the cluster and the node."""
    remove: Callable[[str, str], tuple[str, ...]] | None = None
    """Returns the command for an image's name and the cluster."""
    contexts: str = ""
    everywhere: bool = False


_CTR = ("ctr", "--namespace", "k8s.io", "images")
TOOLS: Mapping[str, Tool] = {
    "kind": Tool(
        lambda file, cluster, node: (
            "kind", "load", "image-archive", file, "--name", cluster, "--nodes", node,
        ),
        contexts="kind-",
    ),
    "minikube": Tool(
        lambda file, cluster, _: ("minikube", "image", "load", file, "--profile", cluster),
        lambda image, cluster: ("minikube", "image", "rm", image, "--profile", cluster),
        everywhere=True,
    ),
    "k3d": Tool(
        lambda file, cluster, _: ("k3d", "image", "import", file, "--cluster", cluster),
        contexts="k3d-",
        everywhere=True,
    ),
    "containerd": Tool(lambda file, *_: (*_CTR, "import", file), lambda image, _: (*_CTR, "rm", image)),
}  # fmt: skip
"""The tools by their words in a study; ``containerd`` is that of this machine, which is then the node."""


def _as_words(raw: Any) -> Any:
    if isinstance(raw, str) and raw not in get_args(Word):
        raise ValueError(f"'{raw}' is not one of {', '.join(get_args(Word))}, or a command as a list of words")
    return (raw,) if isinstance(raw, str) else raw


class NodeImages(Options):
    """How images get to a node: ``load``, ``push`` or ``pull``."""

    load: Annotated[
        Annotated[tuple[str, ...], Field(min_length=1)] | None,
        BeforeValidator(_as_words, json_schema_input_type=Word | list[str] | None),
        Field(
            description="The tool that loads the image (containerd: on this machine, which is then the node), or "
            "a command "
            "that loads it from standard input for the node $WEIGHBRIDGE_NODE: [ssh, NODE, sudo, ctr, "
            "--namespace, k8s.io, images, import, '-']"
        ),
        External.COMMAND,
    ] = None
    remove: Annotated[
        Annotated[tuple[str, ...], Field(min_length=1)] | None,
        Field(
            description="If `load` is a command: a command that removes the image; Weighbridge appends the "
            "image's name"
        ),
        External.COMMAND,
    ] = None
    push: Annotated[
        str | None,
        Field(
            pattern=_REPOSITORY,
            max_length=200,
            description="The REGISTRY/REPOSITORY to which your Docker or Podman pushes the image and from which the "
            "cluster pulls it",
        ),
        External.SERVER,
    ] = None
    pull: Annotated[
        bool, Field(description="Let the cluster pull the image of `userland: {kind: image, ...}` by its digest")
    ] = False

    @model_validator(mode="after")
    def _one_way(self) -> "NodeImages":
        if [self.load is not None, self.push is not None, self.pull].count(True) != 1:
            raise ValueError("give one of load, push and pull")
        if self.remove and (self.load is None or self.tool is not None):
            raise ValueError("'remove' needs a command as 'load'")
        return self

    @property
    def tool(self) -> Tool | None:
        """Return the tool that the study names."""
        return TOOLS.get(self.load[0]) if self.load is not None and len(self.load) == 1 else None

    @property
    def stay(self) -> bool:
        """Return whether images remain after the run."""
        return not (self.tool.remove if self.tool is not None else self.remove)

    @property
    def description(self) -> str:
        """Return how images get there and whether they remain, for the plan."""
        if self.push is not None:
            return f"pushed to {self.push} by your engine (they stay there), and pulled by their digests"
        if self.load is None:
            return "pulled by the cluster (they stay there)"
        return f"loaded by {self.load[0]} ({'they stay there' if self.stay else 'removed at the end'})"


def images_of(words: str) -> Mapping[str, Any]:
    """Return `NodeImages` of a study from words of a command line: a tool, a repository, a command.

    Raises ValueError.
    """
    if words in get_args(Word):
        return {"load": words}
    if words == "pull":
        return {"pull": True}
    if " " in words or words.startswith((".", "/")):
        return {"load": shlex.split(words)}
    if words and re.match(_REPOSITORY, words) is None:
        raise ValueError(f"'{words}' is not one of {', '.join(get_args(Word))}, pull, REGISTRY/REPOSITORY, 'COMMAND'")
    return {"push": words} if words else {}


def usual_images(context: str) -> str:
    """Return the tool that made the cluster of a context, by the context's name; "" if unknown."""
    by_name = (name for name, tool in TOOLS.items() if tool.contexts and context.startswith(tool.contexts))
    return context if context in TOOLS else next(by_name, "")


_THERE = "already exists"
"""Part of containerd's message if another run was faster; an image's name identifies its content."""


class ImageSupply:
    """Brings images to the nodes of a cluster during a run, and removes those that it loaded.

    ``context`` is kubectl's context, by which the tools identify clusters.
    """

    def __init__(self, run: RunContext, kubectl: Kubectl, context: str, options: NodeImages | None) -> None:
        self._run, self._kubectl, self._context, self._options = run, kubectl, context, options
        self._there: dict[tuple[str, str], str] = {}

    @property
    def pulls(self) -> bool:
        """Return whether nodes get images from a registry."""
        return self._options is not None and self._options.load is None

    def userland(self, node: NodeInfo, userland: Userland) -> str:
        """Return the name of a root filesystem's image for pods on the node. Raises Unavailable."""
        if self._options is None or not self._options.pull:
            return self._of(node, userland_image(userland))
        return _pulled(userland)

    def launcher(self, node: NodeInfo) -> str:
        """Return the name of an image for a pod that only needs the launcher. Raises Unavailable.

        If a registry has no images of ours, it is a root filesystem's, because no other image has the launcher.
        """
        if self._options is None or not self._options.pull:
            return self._of(node, launcher_image(build.ensure(self._run.cache, self._run.say).read_bytes()))
        userlands = self._run.userlands
        known = () if userlands is None else userlands.all
        return _pulled(next((each for each in known if each.reference), None))

    def _of(self, node: NodeInfo, image: ClusterImage) -> str:
        tool = self._options.tool if self._options is not None else None
        place = "" if self.pulls or (tool is not None and tool.everywhere) else node.name
        if (place, image.reference) not in self._there:
            self._there[place, image.reference] = self._brought(node, place, image)
        return self._there[place, image.reference]

    def _brought(self, node: NodeInfo, place: str, image: ClusterImage) -> str:
        if self._options is not None and self._options.push is not None:
            return pushed(
                self._options.push, image, node.architecture or platform.machine(), self._run.cache, self._run.say
            )
        there = node.holds(image.reference)
        removes = self._claimed(place, node.name, image.reference, there=bool(there))
        if there and (self._options is None or self._options.stay):
            return image.reference  # removed images stay listed for minutes
        if self._options is None or self._options.load is None:
            if there is None:  # kubelet reports a missing image
                return image.reference
            raise Unavailable(
                f"node {node.name} does not have the image {image.reference}: say how images reach it (images: "
                "{load: kind}, {push: REGISTRY/REPOSITORY}, ...)"
            )
        self._run.say(f"loading {_words(image)} onto node {node.name}")
        cluster = self._cluster()
        # after a kill, it continues until `clean` ends it
        loading = Command(self._options.load, LOAD_S, {RUN_VARIABLE: self._run.id, NODE_VARIABLE: node.name})
        remove: tuple[str, ...] = (*self._options.remove, image.reference) if self._options.remove else ()
        if (tool := self._options.tool) is not None and tool.remove is not None:
            remove = tool.remove(image.reference, cluster)
        loaded = LoadedImage(node.name, image.reference, remove if removes else (), everywhere=not place)
        NOTES.write(self._run.state, [*NOTES.read(self._run.state), loaded])
        if tool is None:
            done = feed(loading, archive(image, node.architecture or platform.machine()))
        else:
            with _file(self._run, archive(image, node.architecture or platform.machine())) as file:
                done = process.run(replace(loading, argv=tool.load(file, cluster, node.name)))
        if done.returncode != 0 and _THERE not in done.last_words:
            raise Unavailable(f"the image {image.reference} cannot be loaded: {done.argv[0]}: {done.last_words}")
        return image.reference

    def _cluster(self) -> str:
        tool = self._options.tool if self._options is not None else None
        if tool is None or self._context.startswith(tool.contexts):
            return self._context.removeprefix(tool.contexts) if tool is not None else ""
        assert self._options is not None and self._options.load is not None
        raise Unavailable(
            f"images: load: {self._options.load[0]} works with contexts whose name begins with '{tool.contexts}', "
            f"not with '{self._context}'. Name a command that loads an image from its standard input"
        )

    def _claimed(self, place: str, node: str, reference: str, *, there: bool) -> bool:
        """Announce to other runs that this run needs an image; return whether it removes the image at its end.

        It only removes images that it or another run loaded, not those that the node had before.
        """
        removes = self._options is not None and not self._options.stay
        if removes and there and not _removed_lately(node, reference):
            others = map(ImageUse.of, _marks(self._kubectl, self._run.id))
            removes = any(each.removes and each.covers(place, reference) for each in others)
        with contextlib.suppress(Exists):  # for another host of this run
            self._kubectl.create(ImageUse(self._run.id, place, reference, removes).manifest)
        deadline = time.monotonic() + REMOVE_S
        while time.monotonic() < deadline and any(
            each.is_removal and each.covers(place, reference)
            for each in map(ImageUse.of, _marks(self._kubectl, self._run.id))
        ):
            time.sleep(1)  # the removing run checked for needs before this one existed
        return removes

    def remove(self) -> None:
        """Remove loaded images, unless another run needs them; report which ones remain."""
        for image in NOTES.read(self._run.state):
            if not image.remove:
                self._run.say(f"the image {image.reference} stays on node {image.node} for later runs")
            elif image.taken_away(self._run.id, self._run.state):
                continue  # the end of the run tries again, and reports failures
            NOTES.write(self._run.state, [each for each in NOTES.read(self._run.state) if each != image])


def _pulled(userland: Userland | None) -> str:
    if userland is None or not userland.reference:
        raise Unavailable(
            "images: {pull: true} needs an image from a registry ('userland: {kind: image, image: NAME}') that "
            "your engine pulled or pushed. For other images use load or push"
        )
    return userland.reference


def names_on_nodes(options: NodeImages | None, userland: Userland, cache: Path) -> list[str]:
    """Return the names of images that a run only loads onto nodes without them, as far as known.

    Raises Unavailable.
    """
    if options is not None and options.pull:
        return [_pulled(userland)]
    if options is not None and options.load is not None and not options.stay:
        return []
    images = [userland_image(userland)]
    if (program := build.cached(cache)) is not None:
        images.append(launcher_image(program.read_bytes()))
    if options is None or options.push is None:
        return [each.reference for each in images]
    digests, repository = _pushed_before(cache), options.push
    tags = [each.pushed_to(repository) for each in images]
    return [f"{repository}@{digests[tag]}" for tag in tags if tag in digests]


def _pushed_before(cache: Path) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError):
        return dict(json.loads((cache / _PUSHED).read_text()))
    return {}


def _words(image: ClusterImage) -> str:
    return f"{image.name}:{image.content} ({image.size / 1e6:.0f} MB)"


@contextmanager
def supply(run: RunContext, kubectl: Kubectl, context: str, options: NodeImages | None) -> Iterator[ImageSupply]:
    """Yield the supply of images by the options, until the context ends."""
    images = ImageSupply(run, kubectl, context, options)
    try:
        yield images
    finally:
        images.remove()


@contextmanager
def _file(run: RunContext, pieces: Iterator[bytes]) -> Iterator[str]:
    folder = run.cache / "engines" / run.id
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".tar") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            yield file.name
    finally:
        with contextlib.suppress(OSError):  # other parts of the run have data there
            folder.rmdir()


def push_all(
    userlands: Callable[[], Userlands], repository: str, cache: Path, say: Callable[[str], None]
) -> list[str]:
    """Push every image that pods of these root filesystems need; return their names. Raises Unavailable."""
    if re.match(_REPOSITORY, repository) is None:
        raise Unavailable(f"'{repository}' is not a REGISTRY/REPOSITORY: write it in lower case, without a tag")
    images = [launcher_image(build.ensure(cache, say).read_bytes())]
    images += [userland_image(each) for each in userlands().all]
    machine = platform.machine()
    return [pushed(repository, image, machine, cache, say, again=True) for image in dict.fromkeys(images)]


def pushed(
    repository: str,
    image: ClusterImage,
    machine: str,
    cache: Path,
    say: Callable[[str], None],
    *,
    again: bool = False,
) -> str:
    """Return an image's name and digest in a repository; push it if no earlier push is recorded, or if ``again``.

    Raises Unavailable.
    """
    tag = image.pushed_to(repository)
    notes, digests = cache / _PUSHED, _pushed_before(cache)
    if again or tag not in digests:
        program = pushing_engine()
        say(f"pushing {_words(image)} to {repository} with {program}")
        digests[tag] = push(program, tag, archive(image, machine, tag))
        unfinished = notes.with_suffix(f".{os.getpid()}")
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(digests))
        unfinished.replace(notes)
    return f"{repository}@{digests[tag]}"


@dataclass(frozen=True, slots=True)
class ImageUse:
    """A run's need of an image, in a ConfigMap that other runs read; it counts before the run has its first pod.

    ``node`` is "" for all nodes. ``removes``: the run removes the image at its end, unless another run needs it then.
    ``is_removal``: the run removes the image now, and others have to wait before they load it.
    """

    run: str
    node: str
    reference: str
    removes: bool
    is_removal: bool = False

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> "ImageUse":
        """Return the need in a ConfigMap."""
        data = about.get("data") or {}
        run = about["metadata"]["labels"].get(RUN_LABEL, "")
        flags = data.get("removes") == "true", data.get("removal") == "true"
        return cls(run, data.get("node", ""), data.get("image", ""), *flags)

    @property
    def name(self) -> str:
        """Return the name of the ConfigMap."""
        identity = f"{self.node} {self.reference} {self.is_removal}"
        return object_name(self.run, "image", sha256(identity.encode()).hexdigest()[:16])

    @property
    def manifest(self) -> dict[str, Any]:
        """Return the ConfigMap."""
        flags = {"removes": str(self.removes).lower(), "removal": str(self.is_removal).lower()}
        data = {"node": self.node, "image": self.reference, **flags}
        metadata = {"name": self.name, "labels": {**labels(self.run), IMAGE_LABEL: "needed"}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    def covers(self, place: str, reference: str) -> bool:
        """Return whether it concerns an image on a node; ``place`` "" means any node."""
        return self.reference == reference and (not place or self.node in ("", place))


def _in_all_namespaces(kubectl: Kubectl, *words: str) -> list[Mapping[str, Any]]:
    """Return the objects in all namespaces, or only in the run's own if the user cannot see others."""
    with contextlib.suppress(Denied):
        return list(kubectl.get(*words, "--all-namespaces")["items"])
    return list(kubectl.get(*words)["items"])


def _marks(kubectl: Kubectl, run_id: str) -> list[Mapping[str, Any]]:
    """Return the needs of other runs, alive or not."""
    return _in_all_namespaces(kubectl, "configmaps", f"--selector={IMAGE_LABEL},{RUN_LABEL}!={run_id}")


def _needed(kubectl: Kubectl, run_id: str, place: str, reference: str) -> Iterator[ImageUse]:
    """Yield the needs of other runs that can be alive, and of unfinished pods. Raises Unavailable."""
    on_node = (f"--field-selector=spec.nodeName={place}",) if place else ()
    listed = _in_all_namespaces(kubectl, "pods", f"--selector={RUN_LABEL}!={run_id}", *on_node)
    pods = [each for each in listed if not (has_ended(each) or each["metadata"].get("deletionTimestamp"))]
    marks = _marks(kubectl, run_id)
    alive = {each.id for each in runs_at([*marks, *pods], kubectl.clock()) if each.alive}
    uses = [each for each in map(ImageUse.of, marks) if each.run in alive and each.covers(place, reference)]
    yield from (each for each in uses if not each.is_removal)
    for pod in pods:
        if any(container.get("image") == reference for container in pod["spec"]["containers"]):
            yield ImageUse("", place, reference, removes=False)


@contextmanager
def _announced(kubectl: Kubectl, removal: ImageUse) -> Iterator[None]:
    """Announce the removal of an image to other runs until the context ends."""
    with contextlib.suppress(Exists):  # an earlier attempt failed
        kubectl.create(removal.manifest)
    try:
        yield
    finally:
        kubectl.delete(f"configmap/{removal.name}")


_LISTED_S = 600.0
"""The seconds for which a node's status can list a removed image."""


def _note_of_removal(node: str, reference: str) -> Path:
    return cache_folder() / "removed-images" / f"{node}-{reference.replace('/', '-')}"


def _removed_lately(node: str, reference: str) -> bool:
    with contextlib.suppress(OSError):
        return time.time() - _note_of_removal(node, reference).stat().st_mtime < _LISTED_S
    return False


@dataclass(frozen=True, slots=True)
class LoadedImage:
    """An image that a run loaded onto a node. ``remove`` is the command that removes it; () if it remains.

    ``everywhere``: the command removes it from all nodes.
    """

    node: str
    reference: str
    remove: tuple[str, ...] = field(default=())
    everywhere: bool = False

    def taken_away(self, run_id: str, state: Path) -> str:
        """Remove the image of a run, unless others need it; return why it remains, in one sentence.

        Returns "" also if another run removes it later. ``state`` has the run's notes of its clusters.
        """
        problem = f"the image {self.reference} might be left on node {self.node}"
        place = "" if self.everywhere else self.node
        need_of_run, kubectls = (
            ImageUse(run_id, place, self.reference, True),
            [each.kubectl() for each in places_of(state)],
        )
        try:
            with ExitStack() as announced:
                for kubectl in kubectls:  # first, so that the later of two ending runs sees no need
                    kubectl.delete(f"configmap/{need_of_run.name}")
                    announced.enter_context(_announced(kubectl, replace(need_of_run, is_removal=True)))
                needs = [need for each in kubectls for need in _needed(each, run_id, place, self.reference)]
                if needs:
                    return "" if any(each.removes for each in needs) else f"{problem}: another run needs it"
                done = process.run(Command(self.remove, REMOVE_S, {NODE_VARIABLE: self.node}))
        except (Unavailable, EnvironmentLost) as error:
            return f"{problem}: {error}"
        if done.returncode != 0 and "not found" not in done.last_words:
            return f"{problem}: {done.last_words}"
        with contextlib.suppress(OSError):
            note = _note_of_removal(self.node, self.reference)
            note.parent.mkdir(parents=True, exist_ok=True)
            note.touch()
        return ""


NOTES = Notes("kubernetes-images.json", LoadedImage)


class LoadedImages(Cleanup):
    """Images that runs loaded onto nodes of clusters and for which a removing command is known."""

    label = "images on nodes of Kubernetes clusters"

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield each image in a run's notes."""
        for run, image in NOTES.of_runs(folders):
            if image.remove:
                yield Leftover(run, f"image on node {image.node}", image.reference)

    def remove(self, run: OrphanedRun) -> None:
        """Remove the images in the run's notes. Raises OSError if one remains, or if a folder still needs them."""
        images = [each for each in NOTES.read(run.state) if each.remove]
        if images and volumes.NOTES.read(run.state):
            raise OSError("the pods that remove its folders from nodes need them")
        kept = {image: reason for image in images if (reason := image.taken_away(run.id, run.state))}
        NOTES.write(run.state, [*kept])
        if kept:
            raise OSError("; ".join(kept.values()))
