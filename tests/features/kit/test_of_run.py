"""The kit of a run: its study, its file and its page; and what is left of a stranger's names."""

import gzip
import hashlib
import lzma
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from report.made_up_runs import Recipe, make_run
from report.test_html import HOSTILE
from sentences import assert_sentence, raises_sentence
from weighbridge.errors import RunDirectoryError, StudyError
from weighbridge.features.kit.of_run import ORIGINAL, STUDY, kit_of_run
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse

ROOT = Path(__file__).parents[3]
WEIGHED = """\
study: weigh-true
question: How much does it cost?
userland: {kind: host, folder: /home/author/project, env: {PATH: /usr/bin}}
baseline: native
environments: {native: {kind: native}, netns: {kind: netns}}
workloads: {command: {kind: command, run: ['true']}}
repetitions: {rounds: 6}
"""


@pytest.fixture
def kept(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RunStore]:
    """A run that the project keeps."""
    archive = ROOT / "docs/runs" / f"{request.param}.sqlite.xz"
    (tmp_path / DATABASE).write_bytes(lzma.decompress(archive.read_bytes()))
    with RunStore(tmp_path) as store:
        yield store


@pytest.mark.parametrize("kept", ["weigh", "weigh-server", "why-first-look", "nat-latency"], indirect=True)
def test_the_kit_of_a_kept_run(kept: RunStore):
    files = kit_of_run(kept)
    assert [*files] == [STUDY, ORIGINAL, "repeat.sh", "README.md"]
    assert [path for path, file in files.items() if file.executable] == ["repeat.sh"]
    database = gzip.decompress(files[ORIGINAL].data)
    assert database == (kept.directory / DATABASE).read_bytes()
    page = files["README.md"].data.decode()
    assert hashlib.sha256(database).hexdigest() in page
    assert ("replicate --report repeated --claims" in page) is (kept.info()["study"] == "nat-latency")
    study = check(parse(files[STUDY].data.decode(), STUDY))
    assert study.file.study == kept.info()["study"]
    assert {arm.name for arm in study.arms} >= {name for name, *_ in kept.environments()}
    assert "/home/me/project" not in study.text
    if "weigh" in kept.info()["study"]:
        assert str(study.file.userland.folder) == str(Path.cwd())


def stored(folder: Path, text: str, **info: str) -> RunStore:
    """A run whose study has this text."""
    make_run(folder, Recipe(costs={"netns": 1.1}, study="weigh-true")).close()
    with RunStore(folder, writable=True) as store:
        for key, value in {"study_text": text, **info}.items():
            store.set_info(key, value)
    return RunStore(folder)


def test_programs_run_in_the_folder_of_the_kit(tmp_path: Path):
    with stored(tmp_path / "run", WEIGHED) as store:
        files = kit_of_run(store)
    text = files[STUDY].data.decode()
    assert "folder: ." in text and "/home/author" not in text
    assert text.replace("folder: .", "folder: /home/author/project") == WEIGHED


def test_two_versions_are_not_packed_into_one_folder(tmp_path: Path):
    other = "netns: {kind: netns, userland: {kind: host, folder: /home/author/base}}"
    text = WEIGHED.replace("netns: {kind: netns}", other)
    with stored(tmp_path / "run", text) as store, raises_sentence(RunDirectoryError):
        kit_of_run(store)


def test_the_page_names_the_secrets_that_the_study_needs(tmp_path: Path):
    text = WEIGHED.replace("PATH: /usr/bin", "TOKEN: '${secret:TOKEN}'")
    with stored(tmp_path / "run", text) as store:
        page = kit_of_run(store)["README.md"].data.decode()
    assert "./repeat.sh --env TOKEN\n" in page


def test_a_run_with_values_of_secrets_is_not_packed(tmp_path: Path):
    text = WEIGHED.replace("PATH: /usr/bin", "API_TOKEN: b7e1c2d3a4f5")
    with stored(tmp_path / "run", text) as store, raises_sentence(RunDirectoryError) as error:
        kit_of_run(store)
    assert "b7e1" not in str(error.value)


def test_a_study_that_cannot_be_read_is_not_packed(tmp_path: Path):
    with stored(tmp_path / "run", "study: [") as store, raises_sentence(StudyError):
        kit_of_run(store)


def test_names_of_a_stranger_are_text_on_the_page(tmp_path: Path):
    words = f"{HOSTILE} [x](http://example.org) \x1b[2J # | ~~~ ```"
    with stored(tmp_path / "run", WEIGHED, question=words, version=words) as store:
        files = kit_of_run(store)
    page = files["README.md"].data.decode()
    html = MarkdownIt("commonmark").enable("table").render(page)
    assert "<script" not in html and "<img" not in html and "<a " not in html and "\x1b" not in page
    assert_sentence(files["repeat.sh"].data.decode())
