"""Images of small layers: what docker load is given, and the folder that stands for one of them."""

import hashlib
import io
import json
import tarfile
import zlib
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.engines.layers import file_layer, folder_as_layer, image_archive, lower_layer, random_files
from weighbridge.errors import Unavailable
from weighbridge.model.command import Command, Completed


@given(st.binary(max_size=4000), st.binary(max_size=4000))
def test_the_layers_of_an_image_are_those_that_its_manifest_and_its_config_name(lower: bytes, upper: bytes):
    layers = (file_layer("/userland", lower), file_layer("/launcher", upper))
    with tarfile.open(fileobj=io.BytesIO(image_archive("weighbridge:1", {"run": "1"}, "amd64", layers))) as archive:
        files = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
    [about] = json.loads(files["manifest.json"])
    config = json.loads(files[about["Config"]])
    found = [files[name] for name in about["Layers"]]
    assert found == list(layers) and about["RepoTags"] == ["weighbridge:1"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in found]
    assert (config["architecture"], config["config"]["Labels"]) == ("amd64", {"run": "1"})
    with tarfile.open(fileobj=io.BytesIO(found[1])) as layer:
        [member] = layer.getmembers()
        assert (member.name, member.mode) == ("launcher", 0o755)
        assert layer.extractfile(member).read() == upper  # type: ignore[union-attr]


@given(st.integers(0, 3 * 2**20))
@settings(max_examples=10, deadline=None)
def test_random_files_have_the_requested_size_and_an_archive_can_follow(size: int):
    pieces = b"".join([*random_files(size), file_layer("/launcher", b"program")])
    with tarfile.open(fileobj=io.BytesIO(pieces)) as archive:
        *files, launcher = archive.getmembers()
        contents = [archive.extractfile(each).read() for each in files]  # type: ignore[union-attr]
    assert launcher.name == "launcher"
    assert sum(map(len, contents)) == size and len({*contents}) == len(files) == -(-size // 2**20)


def test_random_files_neither_compress_nor_change():
    twice = [b"".join(random_files(2 * 2**20)) for _ in range(2)]
    assert twice[0] == twice[1]
    assert len(zlib.compress(twice[0])) > 2 * 2**20


@pytest.mark.parametrize("command", [(), ("/pause", "now")])
def test_an_image_may_say_what_a_container_starts(command: tuple[str, ...]):
    saved = image_archive("pause:1", {}, "amd64", (file_layer("/pause", b""),), command)
    with tarfile.open(fileobj=io.BytesIO(saved)) as archive:
        config = json.loads(archive.extractfile("config.json").read())["config"]  # type: ignore[union-attr]
    assert tuple(config.get("Cmd", ())) == command


class Host:
    """A host on which every command ends as it is told."""

    name = "lab"

    def __init__(self, code: int) -> None:
        self.code = code
        self.asked: list[tuple[str, ...]] = []

    def run(self, command: Command) -> Completed:
        self.asked.append(command.argv)
        return Completed(command.argv, self.code, b"", b"mount: no such folder\n", 0.1)


def image(lower: str | None) -> SimpleNamespace:
    return SimpleNamespace(attrs={"GraphDriver": {"Data": {"LowerDir": lower} if lower else None}})


def test_where_it_cannot_that_is_told():
    with raises_sentence(Unavailable):
        folder_as_layer(Host(32), "/data/overlay2/a/diff", "/run/b")  # type: ignore[arg-type]


def test_only_overlay2_has_a_folder_for_a_layer():
    assert lower_layer(image("/data/overlay2/a/diff")) == "/data/overlay2/a/diff"
    assert lower_layer(image(None)) is None
    assert lower_layer(SimpleNamespace(attrs={"GraphDriver": None})) is None


def test_the_folder_is_mounted_read_only():
    """An engine that removed the layer would otherwise remove the files of the host."""
    host = Host(0)
    folder_as_layer(host, "/data/overlay2/a/diff", "/run/b")  # type: ignore[arg-type]
    assert host.asked == [("mount", "-o", "bind,ro", "/run/b", "/data/overlay2/a/diff")]
