"""Images as docker save writes them: their layers laid over one another, and what is no such image."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.engines.layers import image_archive
from weighbridge.errors import Unavailable, UserlandError
from weighbridge.model.userland import UserlandSpec
from weighbridge.userland.sources.saved_image import PLUGIN, SavedImageOptions

SPEC = UserlandSpec()


def layer(files: Mapping[str, bytes | None]) -> bytes:
    """An archive of files, and of folders where there is no content."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            if content is None:
                about.type = tarfile.DIRTYPE
            about.size = len(content or b"")
            archive.addfile(about, io.BytesIO(content or b""))
    return made.getvalue()


def linked(files: Mapping[str, bytes | str]) -> bytes:
    """An archive of files, and of hard links where there is a name in place of content."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            if isinstance(content, str):
                about.type, about.linkname = tarfile.LNKTYPE, content
                archive.addfile(about)
            else:
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))
    return made.getvalue()


def saved(path: Path, *layers: bytes, config: Mapping[str, object] | None = None) -> SavedImageOptions:
    text = json.dumps({"config": config or {}}).encode()
    names = [f"blobs/{hashlib.sha256(each).hexdigest()}" for each in layers]
    manifest = json.dumps([{"Config": "config.json", "RepoTags": None, "Layers": names}]).encode()
    with tarfile.open(path, "w") as archive:
        for name, content in (*zip(names, layers, strict=True), ("config.json", text), ("manifest.json", manifest)):
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return SavedImageOptions(path=str(path))


def built(options: SavedImageOptions, folder: Path) -> dict[str, bytes]:
    PLUGIN.build(options, SPEC, folder, folder, lambda text: None)
    with tarfile.open(folder / "root.tar") as archive:
        return {
            each.name: archive.extractfile(each).read()  # type: ignore[union-attr]
            for each in archive.getmembers()
            if each.isreg()
        }


def test_upper_layers_replace_remove_and_empty(tmp_path: Path):
    lower = layer({"a": b"1", "b": b"1", "./c/d": b"1", "c/e": b"1", "f/g": b"1", "f/h/i": b"1"})
    middle = layer({"a": b"2", ".wh.b": b"", "c/.wh.d": b"", "f/.wh..wh..opq": b"", "f/k": b"2"})
    upper = layer({"b": b"3"})
    found = built(saved(tmp_path / "i.tar", lower, middle, upper), tmp_path)
    assert found == {"./a": b"2", "./b": b"3", "./c/e": b"1", "./f/k": b"2"}


def test_a_removed_folder_takes_what_is_in_it(tmp_path: Path):
    lower = layer({"opt": None, "opt/app": b"1", "opt/lib/x": b"1", "optional": b"1"})
    found = built(saved(tmp_path / "i.tar", lower, layer({".wh.opt": b""})), tmp_path)
    assert found == {"./optional": b"1"}


LINKS = linked({"d/a": b"old", "b": "d/a", "c": "b"})


@pytest.mark.parametrize(
    ("upper", "left"),
    [
        ({}, {"./d/a": b"old", "./b": b"old", "./c": b"old"}),
        ({"d/a": b"new"}, {"./d/a": b"new", "./b": b"old", "./c": b"old"}),
        ({"d/.wh.a": b""}, {"./b": b"old", "./c": b"old"}),
        ({"d/.wh..wh..opq": b"", "d/e": b"new"}, {"./b": b"old", "./c": b"old", "./d/e": b"new"}),
        ({".wh.d": b"", "b": b"new"}, {"./b": b"new", "./c": b"old"}),
    ],
)
def test_a_hard_link_keeps_what_it_holds_whatever_is_made_of_its_target(tmp_path: Path, upper: dict, left: dict):
    options = saved(tmp_path / "i.tar", LINKS, linked(upper))
    built(options, tmp_path)
    with tarfile.open(tmp_path / "root.tar") as archive:
        archive.extractall(tmp_path / "root", filter="data")
    found = {f"./{p.relative_to(tmp_path / 'root')}": p for p in (tmp_path / "root").rglob("*") if p.is_file()}
    assert {name: path.read_bytes() for name, path in found.items()} == left
    assert (tmp_path / "root/c").stat().st_nlink == sum(content == b"old" for content in left.values())


def test_names_lead_nowhere_else(tmp_path: Path):
    found = built(saved(tmp_path / "i.tar", layer({"../../etc/passwd": b"1", "/abs": b"1"})), tmp_path)
    assert found == {"./etc/passwd": b"1", "./abs": b"1"}


def test_an_image_that_this_tool_makes_itself(tmp_path: Path):
    path = tmp_path / "i.tar"
    path.write_bytes(image_archive("weighbridge:1", {}, "amd64", (layer({"x": b"1"}), layer({"y": b"2"}))))
    assert built(SavedImageOptions(path=str(path)), tmp_path) == {"./x": b"1", "./y": b"2"}


def test_its_configuration(tmp_path: Path):
    config = {"Entrypoint": ["/shop", "-v"], "Cmd": ["--all"], "User": "7:8", "WorkingDir": "/srv", "Env": ["A=1"]}
    options = saved(tmp_path / "i.tar", layer({"x": b""}), config=config)
    process = PLUGIN.process(options, tmp_path)
    assert (process.env, process.cwd, process.uid, process.gid) == ({"A": "1", "HOME": "/"}, "/srv", 7, 8)
    assert PLUGIN.entry_point(options) == ("/shop", "-v")
    assert PLUGIN.default_command(options) == ("--all",)


def test_another_configuration_is_another_userland(tmp_path: Path):
    one = PLUGIN.key(saved(tmp_path / "1.tar", layer({"x": b""})), SPEC)
    other = PLUGIN.key(saved(tmp_path / "2.tar", layer({"x": b""}), config={"User": "1"}), SPEC)
    assert one != other and one == PLUGIN.key(saved(tmp_path / "3.tar", layer({"x": b""})), SPEC)


def test_no_file_is_told(tmp_path: Path):
    with raises_sentence(Unavailable):
        PLUGIN.key(SavedImageOptions(path=str(tmp_path / "none.tar")), SPEC)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_one_is_one_sentence(tmp_path: Path, data: st.DataObject):
    path = tmp_path / "i.tar"
    saved(path, layer({"x": b"1" * 600}), config={"Entrypoint": ["/x"]})
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(whole[:cut] + data.draw(st.binary(max_size=20)))
    try:
        PLUGIN.entry_point(SavedImageOptions(path=str(path)))
        built(SavedImageOptions(path=str(path)), tmp_path)
    except UserlandError as error:
        assert "docker save" in str(error) and "\n" not in str(error)


def test_a_folder_that_an_upper_layer_makes_a_file_is_gone(tmp_path: Path):
    lower, upper = layer({"html": None, "html/x": b"1"}), layer({"html": b"2"})
    assert built(saved(tmp_path / "i.tar", lower, upper), tmp_path) == {"./html": b"2"}
