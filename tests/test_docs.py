"""What the documents show must be true: their studies load, their commands run, their links lead somewhere."""

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, get_args

import pytest
import typer.main
from markdown_it import MarkdownIt
from ruamel.yaml import YAML

from weighbridge import errors, registry, workloads
from weighbridge.analysis import remarks
from weighbridge.analysis.run_result import VerdictCode
from weighbridge.cli.app import app
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.cli.schema import schema_of
from weighbridge.features.monitoring.families import Families
from weighbridge.features.monitoring.snapshot import Snapshot
from weighbridge.features.replication.published import available
from weighbridge.linux.packages import TABLE, distributions
from weighbridge.model.command import Completed
from weighbridge.model.measurement import ProgramFailed, Unparseable
from weighbridge.model.workload import Endpoint
from weighbridge.report.text.remarks import CODES
from weighbridge.study.loader import check
from weighbridge.study.schema import json_schema
from weighbridge.study.source import bundled, parse

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
import generated  # noqa: E402
import kept_runs  # noqa: E402
from pictures import draw  # noqa: E402

PAGES = sorted(path.relative_to(ROOT) for path in DOCS.rglob("*.md"))
SKILL = Path("src/weighbridge/cli/SKILL.md")
READ_ON_GITHUB = [*map(Path, ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "monitoring/README.md"))]
MARKDOWN = MarkdownIt("commonmark").enable("table")

TRIES = {"studies", "schema", "skill", "init", "report", "compare", "history", "export", "kit", "gate"}
"""Commands that are run here as they are written; of `weigh` the study is made, and of all others the words are read.

What takes longer than a minute, or an engine, other tests run: tests/real.
"""
ASKS_AN_ENGINE = {"--image", "--compose", "--extend"}
"""Options that need more than the files of a run: Docker, Docker Compose, the environments of the run."""


class Shown(NamedTuple):
    """A command line of a document."""

    page: str
    line: str

    @property
    def words(self) -> list[str]:
        """The words up to the first redirection or pipe."""
        words = shlex.split(self.line, comments=True)
        return words[: next((place for place, word in enumerate(words) if word in (">", ">>", "|")), None)]


def lines_of(page: Path) -> Iterator[str]:
    """Give the lines of a document's shell blocks, a continued one as one: a shell continues none within quotes."""
    for token in MARKDOWN.parse((ROOT / page).read_text()):
        if token.type == "code_block" or (token.type == "fence" and token.info == "sh"):
            assert not re.search(r"^[^'\n]*('[^'\n]*'[^'\n]*)*'[^'\n]*\\\n", token.content, re.MULTILINE), page
            yield from re.sub(r"\\\n\s*", "", token.content).splitlines()


SHOWN = [
    Shown(str(page), line.strip())
    for page in (Path("README.md"), Path("CONTRIBUTING.md"), Path("monitoring/README.md"), SKILL, *PAGES)
    for line in lines_of(page)
    if line.strip().startswith(("weighbridge ", "make ", ".venv/bin/weighbridge "))
]
BY_US = [each for each in SHOWN if each.words[0].endswith("weighbridge")]


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def shown(text: str, first: str, last: str) -> bytes:
    """An output that a document shows, from the line that begins with ``first`` to the one with ``last``."""
    found = re.search(rf"^    {re.escape(first)}.*?^    {re.escape(last)}[^\n]*", text, re.DOTALL | re.MULTILINE)
    assert found
    return re.sub("^    ", "", found[0], flags=re.MULTILINE).encode() + b"\n"


GENERATED = [page for page in PAGES if generated.PART.search((ROOT / page).read_text())]


@pytest.mark.parametrize("page", GENERATED, ids=str)
def test_the_generated_parts_of_a_page_are_current(page: Path, request: pytest.FixtureRequest):
    text = (ROOT / page).read_text()
    if (current := generated.filled(text)) == text:
        return
    if request.config.getoption("--update-golden"):
        (ROOT / page).write_text(current)
    else:
        pytest.fail(f"{page} is not current: run `python docs/generated.py`.", pytrace=False)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_generated_part_has_its_end(page: Path):
    text = (ROOT / page).read_text()
    assert len(re.findall(r"^<!-- generated: ", text, re.MULTILINE)) == len(generated.PART.findall(text))


def test_llms_txt_has_every_page(request: pytest.FixtureRequest):
    text = generated.llms_txt()
    if request.config.getoption("--update-golden"):
        generated.LLMS.write_text(text)
    assert text == generated.LLMS.read_text(), "run `python docs/generated.py`"
    listed = {Path(path) for path in re.findall(r"\]\((.*?)\)", text)}
    unlisted = {page for page in PAGES if page not in listed and page.name != "index.md"}
    assert {each for each in listed if not (ROOT / each).is_file()} == set()
    assert {page for page in unlisted if page.parts[1] not in ("tutorial", "project")} == set()


def test_the_skill_is_short_and_its_commands_exist():
    text = (ROOT / SKILL).read_text()
    front = re.match(r"---\nname: weighbridge\ndescription: (.*)\n---\n", text)
    assert front is not None and len(front[1]) <= 1024, "agents load the description of every skill"
    assert len(text.split()) <= 700 and (ROOT / "skills/weighbridge/SKILL.md").read_text() == text
    group = typer.main.get_command(app)
    lines = re.findall(r"`(weighbridge [^`]*)`", text)
    assert len(lines) > 3
    for name, *words in (shlex.split(line.replace("NAME", "report"))[1:] for line in lines):
        group.commands[name].make_context(name, words)


def test_every_kind_of_verdict_is_in_the_skill():
    text = (ROOT / SKILL).read_text()
    assert {each for each in get_args(VerdictCode) if f"| `{each}` |" not in text} == set()
    keys = {"answer", "control_passed", "control_sentence", "disturbed", "next_steps"}
    assert keys <= {*schema_of("report")["properties"]} and all(key in text for key in keys)


def test_every_kind_of_plug_in_has_a_page():
    for kind in {*generated._PROTOCOLS} - {"plugin"}:
        page = (DOCS / f"reference/plugins/{kind}.md").read_text()
        assert f"<!-- generated: protocol {kind} -->" in page


def test_every_published_study_is_among_what_we_measured():
    page = (DOCS / "studies/measured.md").read_text()
    assert {*re.findall(r"^<!-- generated: replication ([\w-]+) -->$", page, re.MULTILINE)} == {
        *kept_runs.replicated_studies()
    }
    assert {name for name in available() if f"## {name}\n" not in page} == set()


def test_the_readme_counts_the_workloads():
    (count,) = re.findall(r"\[(\d+) kinds\]", (ROOT / "README.md").read_text())
    assert int(count) == len(registry.workloads()) - 1  # `command` is a program of one's own


def test_the_readme_names_every_environment():
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| ([^|]*) \| (`[^|]*) \| [^|]+ \|$", text, re.MULTILINE)
    inside, kinds = ({name for row in rows for name in re.findall(r"`([\w-]+)`", row[column])} for column in (0, 1))
    names = {name for each in registry.environments().values() for name in each.weighed_in()}
    assert inside <= names | {"--image", "--cluster"}
    assert {*registry.environments()} <= kinds


def test_no_page_has_a_place_that_waits_for_a_run():
    waiting = re.compile(rf"{re.escape(generated.NOT_KEPT)}|RESULT \d")
    assert [page for page in (*READ_ON_GITHUB, *PAGES) if waiting.search((ROOT / page).read_text())] == []


@pytest.mark.parametrize(
    "picture", ["annotated.svg", "rounds.svg", "verdicts.svg", "waterfall.svg", "agent-sandboxes.svg"]
)
def test_a_picture_is_current(picture: str, request: pytest.FixtureRequest):
    if request.config.getoption("--update-golden"):
        draw.main([picture])
    drawn = (DOCS / "_static" / picture).read_text()
    assert drawn == draw.PICTURES[picture](), f"run: python docs/pictures/draw.py {picture}"
    assert "http" not in re.sub(r'xmlns="[^"]*"', "", drawn)  # it needs no network


@pytest.mark.parametrize("each", SHOWN, ids=lambda each: f"{each.page}: {each.line}"[:100])
def test_a_command_that_is_shown_exists_with_its_options(each: Shown, monkeypatch: pytest.MonkeyPatch):
    if each.words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in each.words[1:] if "=" not in word} <= {*targets}
        return
    command, (name, *words) = typer.main.get_command(app), each.words[1:]
    while hasattr(command := command.commands[name], "commands"):
        name, *words = words
    for variable in ("DB_PASSWORD", "API_TOKEN"):
        monkeypatch.setenv(variable, "of an example")
    command.make_context(name, words)  # UsageError names what is wrong


NOT_KEPT = ("after.", "versions", "--base", "head.")
"""Parts of commands about runs of two versions, of which the project keeps none."""


def runs_here(each: Shown) -> bool:
    """Whether a command is run here: the examples of ``--help`` have runs that only exist as names."""
    name, *words = each.words[1:]
    if each.page == "docs/reference/commands.md" or any(part in each.line for part in NOT_KEPT):
        return False
    return (name in TRIES or name == "weigh") and not ASKS_AN_ENGINE & {*words}


@pytest.fixture(scope="module")
def kept() -> Iterator[dict[str, str]]:
    """What stands for the runs that commands name: two small ones of one question, and one that budgets are about."""
    with (
        kept_runs.run_directory(kept_runs.SERVER) as run,
        kept_runs.run_directory(kept_runs.SERVER_LATER) as older,
        kept_runs.run_directory(kept_runs.WEIGHED) as first,
        kept_runs.run_directory("first-look") as large,
    ):
        runs = {"RUN": run, "run": run, "OLD-RUN": older, "first": first, "runs": run.parent, "large": large}
        study = "results/machines/MACHINE/STUDY"
        runs |= {study: run.parent, f"{study}/RUN-ID.sqlite.xz": kept_runs.kept_file(kept_runs.SERVER_LATER)}
        runs["docs/runs/first-look.sqlite.xz"] = kept_runs.kept_file("first-look")
        yield {name: str(path) for name, path in runs.items()}


@pytest.mark.parametrize(
    "each", [each for each in BY_US if runs_here(each)], ids=lambda each: f"{each.page}: {each.line}"[:100]
)
def test_a_command_that_is_shown_runs(each: Shown, kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_TOKEN", "of an example")
    (tmp_path / "my.yaml").unlink(missing_ok=True)
    name, *words = each.words[1:]
    names_costs = {"--budget", "--fail-if", "--table"} & {*words}
    named = "first" if ".time<" in each.line else "large" if names_costs else "RUN"
    words = [kept[named] if word == "RUN" else kept.get(word, word) for word in words]
    if name == "weigh" and "--save" not in words:
        inside = ["--in", "netns,bridge"] if "--server" in words else []  # else an engine is asked for
        words = ["--save", "made.yaml", *inside, *words]
    try:
        app([name, *words], standalone_mode=False)
    except errors.WeighbridgeError as error:
        assert name == "gate" or "--fail-if" in words, error
        assert error.exit_code in (10, 11, 12)
    if name == "weigh":
        (file,) = tmp_path.glob("*.yaml")
        assert check(parse(file.read_text(), file.name)).file.workloads


@pytest.mark.parametrize("page", [*READ_ON_GITHUB, *PAGES], ids=str)
def test_every_link_leads_to_a_file_and_a_heading(page: Path):
    """As a code-hosting site follows links: without Sphinx, and without a build."""
    tokens = [child for token in MARKDOWN.parse((ROOT / page).read_text()) for child in token.children or ()]
    for target in [
        str(token.attrGet("href") or token.attrGet("src") or "")
        for token in tokens
        if token.type in ("link_open", "image")
    ]:
        if target.startswith("http"):
            assert re.fullmatch(r"https?://[\w.-]+(:\d+)?(/\S*)?", target), target
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        assert not anchor or anchor in headings(file.read_text()), target


def headings(text: str) -> set[str]:
    """Return the anchors of a page's headings, as Sphinx and a code-hosting site make them of a heading's words."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_needs_no_sphinx(page: Path):
    """No targets of MyST alone, and no roles: a code-hosting site would show them as text."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^\(.*\)=$|\{(?:ref|doc)\}`", text, re.MULTILINE) == []


def test_every_page_is_in_the_contents():
    contents = {
        str((ROOT / page).parent.relative_to(ROOT) / f"{name}.md")
        for page in PAGES
        for block in re.findall(r"```\{toctree\}(.*?)```", (ROOT / page).read_text(), re.DOTALL)
        for name in re.findall(r"^[\w/-]+$", block, re.MULTILINE)
    }
    assert {*map(str, PAGES)} == {*contents, "docs/index.md"}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in ("adding.md", "write-a-workload.md")], ids=str
)  # of a kind of its own
def test_the_studies_of_a_page_load(page: Path):
    for text in blocks(str(page), "yaml"):
        if not text.startswith("study:") or "\ncompose:" in text:  # Docker Compose reads that
            continue
        file = check(parse(text, str(page))).file
        assert len(set(file.placement.named)) == (2 if len(file.hosts) > 1 else 0)


def test_every_key_says_what_it_is():
    schemas = {"study": json_schema(), **json_schema()["$defs"]}
    for section in ("workloads", "environments"):
        for kind, plugin in getattr(registry, section)().items():
            schemas[kind] = generated._schema_of(section, kind, plugin)
    undescribed = [
        (name, key)
        for name, schema in schemas.items()
        for key, option in schema.get("properties", {}).items()
        if key != "kind" and not generated.description(option)
    ]
    assert undescribed == []


def test_the_reference_has_every_kind_study_code_and_metric():
    read = [*(DOCS / "reference").glob("*.md"), DOCS / "studies/index.md"]
    pages = "".join(page.read_text() for page in read)
    kinds = {
        *registry.workloads(),
        *registry.environments(),
        *registry.hosts(),
        *registry.storage(),
        *registry.adapters(),
    }
    assert {kind for kind in {*kinds, *registry.userlands(), *CODES} if f"`{kind}`" not in pages} == set()
    assert {name for name in bundled() if f"## {name}" not in pages} == set()
    families = {family.name for family in Families(lambda: Snapshot(0.0)).collect()}
    metrics = generated.prometheus()
    assert {name for name in families if f"`{name}" not in metrics} == set()
    codes = {
        value.exit_code
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.WeighbridgeError)
    }
    assert codes <= {int(code) for code in re.findall(r"^\| (\d+) \|", generated.exit_codes(), re.MULTILINE)}
    assert {name for name in typer.main.get_command(app).commands if f"## {name}\n" not in pages} == set()


@pytest.mark.parametrize("document", [each for each in SchemaDocument if each is not SchemaDocument.STUDY])
def test_the_reference_has_every_key_of_a_document(document: SchemaDocument):
    keys = {
        key
        for each in [schema_of(document), *schema_of(document).get("$defs", {}).values()]
        for key in each.get("properties", {})
    }
    page = generated.json_document(document)
    assert {key for key in keys if f"| `{key}` |" not in page} == set()


def test_the_reference_has_the_fields_of_every_remark():
    table = generated.remark_codes()
    for kind in (
        kind for kind in remarks.kinds() if not kind.__subclasses__() and getattr(kind, "code", None) in CODES
    ):
        (row,) = re.findall(rf"^\| `{kind.code}` \|.*$", table, re.MULTILINE)
        assert all(f"`{field.name}`" in row for field in fields(kind)), kind


def test_the_setup_asks_for_programs_that_the_table_of_packages_knows():
    script = (ROOT / "scripts/setup.sh").read_text()
    loops = re.findall(r"for program in (.*?); do", script.replace("\\\n", " "))
    named = re.findall(r"^\s*(?:.*\|\| )?(?:lacks|need_file) ([a-z][\w.-]*)", script, re.MULTILINE)
    programs = {program for loop in loops for program in loop.split()} | {*named}
    assert {"dockerd", "tini", "libc.a", "systemd-nspawn"} < programs
    known = distributions(TABLE.read_text())["debian"].packages
    assert programs - {*known} == set()


def test_the_example_workload_measures_what_its_document_shows():
    code, _ = blocks("docs/howto/write-a-workload.md", "python")
    names: dict = {}
    exec(compile(code, "docs/howto/write-a-workload.md", "exec"), names)
    plugin = names["PLUGIN"]
    text = (ROOT / "docs/howto/write-a-workload.md").read_text()
    printed, said = (shown(text, first, last) for first, last in (("+H", "+F"), ("+DT", "+R")))

    def completed(code, out):
        return {"solo": Completed(("openssl",), code, out, said, 1.0)}

    (speed,) = plugin.parse(plugin.options(), completed(0, printed)).measurements
    assert speed.value == pytest.approx(4774.936576)
    for end in range(len(printed)):
        with pytest.raises(Unparseable):
            plugin.parse(plugin.options(), completed(0, printed[:end]))
    with pytest.raises(ProgramFailed):
        plugin.parse(plugin.options(), completed(1, printed))


def test_the_example_with_a_server_listens_where_its_client_connects():
    whole, code = blocks("docs/howto/write-a-workload.md", "python")
    names: dict = {"RedisPongOptions": SimpleNamespace}
    exec(compile(whole + code, "docs/howto/write-a-workload.md", "exec"), names)
    at = Endpoint("0.0.0.0", "192.0.2.7", 20001)
    server, client = (names["command"](None, role, SimpleNamespace(requests=9), at) for role in ("server", "client"))
    assert (server.listens, client.listens) == ((("tcp", 20001),), ())
    assert {"0.0.0.0", "20001"} <= set(server.argv)
    assert {"192.0.2.7", "20001"} <= set(client.argv)


def test_the_example_entry_point_is_of_the_group_that_is_looked_for():
    (example,) = blocks("docs/howto/write-a-workload.md", "toml")
    ((group, entries),) = tomllib.loads(example)["project"]["entry-points"].items()
    assert group == workloads.__name__
    assert list(entries.values()) == ["redis_pong:PLUGIN"]


def test_the_citation_is_of_this_version():
    """As the Citation File Format 1.2.0 wants it: these keys must be there, and authors have names."""
    citation = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert citation["version"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert all(author["name"] for author in citation["authors"])


def test_the_example_for_reframe_reads_a_report(kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    sanity = SimpleNamespace(
        assert_ne=lambda value, other, message: value != other, defer=lambda value: value,
        make_performance_function=lambda value, unit: value,
    )  # fmt: skip
    reframe = SimpleNamespace(
        simple_test=lambda test: test, RunOnlyRegressionTest=object, utility=SimpleNamespace(sanity=sanity),
        core=SimpleNamespace(exceptions=SimpleNamespace(SanityError=ValueError)),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "reframe", reframe)
    for name in ("utility", "utility.sanity", "core", "core.exceptions"):
        monkeypatch.setitem(sys.modules, f"reframe.{name}", attrgetter(name)(reframe))
    given: dict[str, Any] = {
        "variable": lambda kind, value=None: value, "sanity_function": lambda method: method,
        "run_before": lambda stage: lambda method: method,
    }  # fmt: skip
    exec((DOCS / "howto/reframe_weighbridge.py").read_text(), given)
    app(["report", kept["RUN"], "--json"], standalone_mode=False)
    (tmp_path / "report.json").write_text(capsys.readouterr().out)

    test = given["Isolation"]()
    test.stagedir = tmp_path
    test.take_costs()

    assert test.is_trusted()
    assert test.perf_variables and test.perf_variables.keys() == test.reference["*"].keys()
