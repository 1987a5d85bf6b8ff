"""Where userlands come from: what names one in the cache, and what is told where it is not there."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.errors import StudyError, Unavailable, UserlandError
from weighbridge.model.userland import UserlandSpec
from weighbridge.runner.preflight import userland_problem
from weighbridge.study.external import external_resources
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.userland import build
from weighbridge.userland.products import root
from weighbridge.userland.sources import directory, host, image, packages

SPEC = UserlandSpec.of(["iperf3"])
TEXT = """\
study: own
question: What does an image of the user's cost?
baseline: native
{userland}
environments: {{native: {{kind: native}}}}
workloads: {{cpu: {{kind: sysbench-cpu, duration: 1s}}}}
repetitions: {{blocks: 1}}
"""


def study(userland: str):
    return check(parse(TEXT.format(userland=userland), "own.yaml"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree/bin").mkdir(parents=True)
    (tmp_path / "tree/bin/true").write_text("1")
    return tmp_path / "tree"


def _key(tree: Path) -> str:
    return directory.PLUGIN.key(directory.DirectoryOptions(path=str(tree)), SPEC)


def test_another_libc_is_another_userland_of_the_same_programs():
    spec = UserlandSpec.of(c=["allocations"])
    musl = packages.PackagesOptions(libc="musl")
    keys = {packages.PLUGIN.key(source, spec) for source in (None, packages.PackagesOptions(), musl)}
    assert len(keys) == 2 and packages.PLUGIN.key(None, spec) == packages.PLUGIN.key(packages.PackagesOptions(), spec)
    (build,) = packages.PLUGIN.recipe(musl, spec).builds
    assert build.packages == ("musl-tools",) and build.commands[0][0] == "musl-gcc"


def test_another_libc_for_programs_that_are_not_ours_is_refused():
    with raises_sentence(UserlandError):
        packages.PLUGIN.key(packages.PackagesOptions(libc="musl"), SPEC)


def test_a_directory_has_another_key_when_a_file_changes(tree: Path):
    keys = [_key(tree)]
    assert _key(tree) == keys[0]
    (tree / "bin/true").write_text("22")
    keys.append(_key(tree))
    os.utime(tree / "bin/true", ns=(1, 1))
    keys.append(_key(tree))
    (tree / "bin/true").chmod(0o700)
    keys.append(_key(tree))
    (tree / "link").symlink_to("nowhere")
    keys.append(_key(tree))
    assert len(set(keys)) == len(keys)


def test_a_directory_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path))
    problem = userland_problem(SPEC, directory.DirectoryOptions(path="/nonexistent"))
    assert problem is not None
    assert_sentence(problem.detail)


class Engine:
    """Implements what of the SDK's client an image needs."""

    def __init__(self, found: str | None) -> None:
        self.images, self.found, self.closed = self, found, 0

    def get(self, name: str) -> Any:
        from docker.errors import ImageNotFound

        if self.found is None:
            raise ImageNotFound("no such image")
        return SimpleNamespace(id=self.found)

    def close(self) -> None:
        self.closed += 1


def test_an_image_is_known_by_the_digest_that_the_engine_has(monkeypatch: pytest.MonkeyPatch):
    options = image.ImageOptions(image="nginx:1.27")
    keys = []
    for digest in ("sha256:a", "sha256:b", "sha256:a"):
        engine = Engine(digest)
        monkeypatch.setattr(image, "client_from_environment", lambda engine=engine: engine)
        keys.append(image.PLUGIN.key(options, SPEC))
        assert engine.closed == 1
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize("engine", [None, Engine(None)])
def test_an_image_that_cannot_be_had_is_told(monkeypatch: pytest.MonkeyPatch, engine: Any):
    monkeypatch.setattr(image, "client_from_environment", lambda: engine)
    with raises_sentence(Unavailable):
        image.PLUGIN.key(image.ImageOptions(image="nginx:1.27"), SPEC)


def test_this_machines_own_root_is_not_packed(tmp_path: Path):
    found = build.ensure(SPEC, tmp_path, print, host.HostRootOptions())
    assert found.root == Path("/")
    assert not list(tmp_path.iterdir())
    with raises_sentence(Unavailable):
        found.archive()


@pytest.mark.parametrize("folder", ["/", "/proc", "/run", "/no/such/folder"])
def test_what_can_be_no_working_directory_is_told(tmp_path: Path, folder: str):
    with pytest.raises(Unavailable, match=folder):
        build.ensure(SPEC, tmp_path, print, host.HostRootOptions(folder=folder))


def test_a_built_one_is_found_again_under_its_key(tree: Path, tmp_path: Path):
    options = directory.DirectoryOptions(path=str(tree))
    assert build.cached(SPEC, tmp_path, options) is None
    folder = tmp_path / "userlands" / build.key_of(SPEC, options)
    folder.mkdir(parents=True)
    (folder / "about.json").write_text(json.dumps({"digest": "d", "versions": {"a": "1"}}))
    found = build.cached(SPEC, tmp_path, options)
    assert found is not None and found.root == folder / "root" and found.archive() == folder / "root.tar"
    assert build.cached(SPEC, tmp_path) is None


@pytest.mark.parametrize(("shared", "mode"), [(False, 0o700), (True, 0o755)])
def test_who_may_enter_a_kept_one(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool, mode: int
):
    """Files of images may have the setuid bit of root: while they are unpacked, too."""
    seen = []

    def unpack(tar: Path, folder: Path) -> None:
        seen.append(tar.parent.stat().st_mode & 0o777)
        folder.mkdir()

    monkeypatch.setattr(root, "unpack", unpack)
    monkeypatch.setattr(directory.archive, "pack", lambda folder, tar: tar.write_bytes(b""))
    monkeypatch.setattr(directory.DirectoryRoot, "shared", shared)
    made = build.ensure(SPEC, tmp_path / "cache", print, directory.DirectoryOptions(path=str(tree)))
    assert seen == [mode] and made.root.parent.stat().st_mode & 0o777 == mode


def test_another_users_is_told_as_such(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refused(self: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refused)
    with pytest.raises(Unavailable, match="WEIGHBRIDGE_CACHE"):
        build.cached(SPEC, tmp_path, directory.DirectoryOptions(path=str(tree)))


def test_only_packages_are_shared_and_they_have_no_setuid_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert [kind for kind, each in registry.userlands().items() if each.shared] == ["packages"]
    told: list[str] = []
    monkeypatch.setattr(packages.debian_archive, "must", lambda *argv, **named: told.extend(argv))
    packages.PLUGIN.build(packages.PackagesOptions(), SPEC, tmp_path, tmp_path, print)
    (hook,) = [each for each in told if "-perm /6000" in each]
    assert hook.startswith("--customize-hook=find") and "chmod ug-s" in hook


def test_packages_without_a_database_have_no_versions(tmp_path: Path):
    assert root.packages_in(tmp_path) == {}


def test_a_study_names_its_source():
    assert study("").file.userland.kind == "packages"
    assert study("userland: host").file.userland.kind == "host"
    chosen = study("userland: {kind: directory, path: /srv/root}")
    assert [(each.kind, each.place, each.value) for each in external_resources(chosen)] == [
        ("file", "userland.path", "/srv/root")
    ]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("userland: imag", "userland: unknown kind 'imag'. Did you mean 'image'?"),
        ("userland: image", "'image' is missing"),
        ("userland: {kind: image, imag: a}", "unknown key 'imag'. Did you mean 'image'?"),
        ("userland: {image: a}", f"a userland needs a kind. Known kinds: {', '.join(sorted(registry.userlands()))}"),
        ("userland: {kind: image, image: -v}", "image"),
    ],
)
def test_mistakes(written: str, says: str):
    with pytest.raises(StudyError) as caught:
        study(written)
    assert says in str(caught.value)
