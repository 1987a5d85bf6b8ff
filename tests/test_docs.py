"""What the documents show must be true: their studies load, their example works, the repeated text is the same."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest

from weighbridge import errors, registry, workloads
from weighbridge.analysis import remarks
from weighbridge.analysis.results import Remark
from weighbridge.cli.schema import Document, schema_of
from weighbridge.linux.packages import TABLE, distributions
from weighbridge.model.command import Completed
from weighbridge.model.measurement import ProgramFailed, Unparseable
from weighbridge.model.workload import Endpoint
from weighbridge.report.text.remarks import CODES
from weighbridge.study.loader import check
from weighbridge.study.schema import json_schema
from weighbridge.study.source import bundled, parse

ROOT = Path(__file__).parents[1]
STUDY = (ROOT / "docs/study.md").read_text()


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def shown(text: str, first: str, last: str) -> bytes:
    """An output that a document shows, from the line that begins with ``first`` to the one with ``last``."""
    found = re.search(rf"^    {re.escape(first)}.*?^    {re.escape(last)}[^\n]*", text, re.DOTALL | re.MULTILINE)
    assert found
    return re.sub("^    ", "", found[0], flags=re.MULTILINE).encode() + b"\n"


def in_code(text: str) -> set[str]:
    """Every word in the code spans and code blocks of a document."""
    return set(re.findall(r"[\w-]+", " ".join(re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL))))


def keys_of(schema: dict) -> set[str]:
    """Every key that a schema knows, at any depth."""
    found = set(schema.get("properties", {}))
    for inner in schema.values():
        for each in inner if isinstance(inner, list) else [inner]:
            if isinstance(each, dict):
                found |= keys_of(each)
        if isinstance(inner, dict):
            found |= {key for each in inner.values() if isinstance(each, dict) for key in keys_of(each)}
    return found


def test_every_key_of_the_schema_is_in_the_page_about_studies():
    known = in_code(STUDY)
    missing = keys_of(json_schema()) - known
    assert not missing, f"docs/study.md must name these keys in code: {sorted(missing)}"
    kinds = {*registry.workloads(), *registry.environments(), *registry.hosts(), *registry.storage(), *bundled()}
    unnamed = sorted(kinds - known)
    assert not unnamed, f"docs/study.md must name these kinds and studies in code: {unnamed}"


def test_every_option_is_told_where_its_kind_is():
    hosts = {kind: plugin for kind, plugin in registry.hosts().items() if not plugin.options.traits.this_machine}
    plugins = {**registry.environments(), **registry.workloads(), **registry.storage(), **hosts}
    for kind, options in {kind: plugin.options for kind, plugin in plugins.items()}.items():
        entry, section = rf"- `{kind}`.*?(?=^- |^\n|^#|\Z)", rf"### `{kind}`.*?(?=^##|\Z)"
        own = re.findall(f"^(?:{entry}|{section})", STUDY, re.DOTALL | re.MULTILINE)  # a source has such a name, too
        assert own, (
            f"docs/study.md must have an entry '- `{kind}` - ' (workload, storage) or a section '### `{kind}`'"
        )
        missing = sorted({*options.model_fields} - {"kind"} - in_code("".join(own)))
        assert not missing, f"docs/study.md must name these options of {kind} in code, at its entry: {missing}"


def test_the_studies_in_the_page_about_studies_load_and_are_on_this_machine_or_between_two_hosts():
    kinds = []
    for text in blocks("docs/study.md", "yaml"):
        file = check(parse(text, "docs/study.md")).file
        assert len(set(file.placement.named)) == (2 if len(file.hosts) > 1 else 0)
        kinds += {host.kind for host in file.hosts.values()}
    assert set(kinds) >= {"guest", "local", "ssh", "testbed"}


def test_the_readme_s_first_study_loads_and_is_between_two_hosts():
    file = check(parse(blocks("README.md", "yaml")[0], "README.md")).file
    assert sorted(set(file.placement.named)) == ["a", "b"]


def test_the_setup_asks_for_programs_that_the_table_of_packages_knows():
    script = (ROOT / "scripts/setup.sh").read_text()
    loops = re.findall(r"for program in (.*?); do", script.replace("\\\n", " "))
    named = re.findall(r"^\s*(?:.*\|\| )?(?:lacks|need_file) ([a-z][\w.-]*)", script, re.MULTILINE)
    programs = {program for loop in loops for program in loop.split()} | {*named}
    assert {"dockerd", "tini", "libc.a", "systemd-nspawn"} < programs
    known = distributions(TABLE.read_text())["debian"].packages
    assert programs - {*known} == set()


def test_the_readme_s_study_loads():
    text = blocks("README.md", "yaml")[-1]
    study = check(parse(text, "README.md"))
    assert [cell.level for cell in study.cells] == [(("clients", "10"),), (("clients", "50"),)]


def test_the_example_workload_measures_what_its_document_shows():
    code, _ = blocks("docs/adding.md", "python")
    names: dict = {}
    exec(compile(code, "docs/adding.md", "exec"), names)
    plugin = names["PLUGIN"]
    text = (ROOT / "docs/adding.md").read_text()
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
    whole, code = blocks("docs/adding.md", "python")
    names: dict = {"RedisPongOptions": SimpleNamespace}
    exec(compile(whole + code, "docs/adding.md", "exec"), names)
    at = Endpoint("0.0.0.0", "192.0.2.7", 20001)
    server, client = (names["command"](None, role, SimpleNamespace(requests=9), at) for role in ("server", "client"))
    assert (server.listens, client.listens) == ((("tcp", 20001),), ())
    assert {"0.0.0.0", "20001"} <= set(server.argv)
    assert {"192.0.2.7", "20001"} <= set(client.argv)


def test_the_example_entry_point_is_of_the_group_that_is_looked_for():
    (example,) = blocks("docs/adding.md", "toml")
    ((group, entries),) = tomllib.loads(example)["project"]["entry-points"].items()
    assert group == workloads.__name__
    assert list(entries.values()) == ["redis_pong:PLUGIN"]


@pytest.mark.parametrize("document", [each for each in Document if each is not Document.STUDY])
def test_the_reference_has_every_key_of_a_document(document: Document):
    whole = (ROOT / "docs/reference.md").read_text()
    section = whole.split(f"### `{document} --json`\n")[1].split("\n### ")[0]
    as_in_a_report = keys_of(schema_of(Document.REPORT)) if document is Document.REPLICATE else set()
    assert keys_of(schema_of(document)) - in_code(section) - as_in_a_report == set()


ABOUT_THE_RUN = {
    remarks.Emulated, remarks.HostsDiffer, remarks.PacketSizes,
    remarks.PathsUnrecorded, remarks.Unverified,
}  # fmt: skip
"""Remarks that are beside no comparison."""
BASES = {Remark, remarks.AboutCost, remarks.AboutEnvironment, remarks.Confounder, remarks.PartOfCost}
"""What classes of remarks have in common."""


def test_the_reference_has_the_fields_of_every_remark():
    known = {kind for kind in vars(remarks).values() if isinstance(kind, type) and issubclass(kind, Remark)}
    ways: dict[str, list[str]] = {code: [] for code in CODES}
    for kind in known - ABOUT_THE_RUN - BASES:
        ways[kind.code].append(", ".join(f"`{each.name}`" for each in fields(kind)))
    section = (ROOT / "docs/reference.md").read_text().split("### The fields of `remarks`\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| `.*$", section, re.MULTILINE)
    assert rows == [
        f"| `{code}` | {'; or '.join(sorted(way))} |".replace("|  |", "| |") for code, way in ways.items()
    ]


def test_the_reference_says_what_is_unverified_on_real_hardware():
    known = {**registry.environments(), **registry.hosts()}
    expected = [f"- `{kind}`: {what}." for kind, plugin in known.items() if (what := plugin.unverified())]
    for plugin in registry.environments().values():
        rows = {name: plugin.unverified(options) for name, options in plugin.variants().items()}
        expected += [f"- `{name}`: {what}." for name, what in rows.items() if what and what != plugin.unverified()]
    section = (ROOT / "docs/reference.md").read_text().split("## Unverified on real hardware\n")[1].split("\n## ")[0]
    listed = re.findall(r"^- .*$", section, re.MULTILINE)
    wanted = "docs/reference.md, 'Unverified on real hardware', must list what the plug-ins' unverified() says"
    assert listed == (expected or ["- None."]), wanted


def test_the_reference_lists_every_exit_code():
    listed = (ROOT / "docs/reference.md").read_text()
    codes = {
        value.exit_code
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.WeighbridgeError)
    }
    assert codes <= {int(code) for code in re.findall(r"^\| (\d+) \|", listed, re.MULTILINE)}
