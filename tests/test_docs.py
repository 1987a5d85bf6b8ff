"""What the documents show must be true: their studies load, their example works, the repeated text is the same."""

import inspect
import re
from pathlib import Path

import pytest

from weighbridge import errors
from weighbridge.model.command import Completed
from weighbridge.model.measurement import ProgramFailed, Unparseable
from weighbridge.report.machine import report_json
from weighbridge.study.loader import check
from weighbridge.study.source import parse

ROOT = Path(__file__).parents[1]


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def test_the_readme_s_study_loads():
    (text,) = blocks("README.md", "yaml")
    study = check(parse(text, "README.md"))
    assert [cell.level for cell in study.cells] == [(("clients", "10"),), (("clients", "50"),)]


def test_the_example_workload_measures_what_its_document_shows():
    (code,) = blocks("docs/adding.md", "python")
    names: dict = {}
    exec(compile(code, "docs/adding.md", "exec"), names)
    plugin = names["PLUGIN"]
    shown = re.search(r"^    \+DT.*?^    \+F[^\n]*", (ROOT / "docs/adding.md").read_text(), re.DOTALL | re.MULTILINE)
    printed = re.sub("^    ", "", shown[0], flags=re.MULTILINE).encode()

    def completed(code, out):
        return {"solo": Completed(("openssl",), code, out, b"", 1.0)}

    (speed,) = plugin.parse(plugin.options(), completed(0, printed))
    assert speed.value == pytest.approx(4048.65024)
    with pytest.raises(Unparseable):
        plugin.parse(plugin.options(), completed(0, b""))
    with pytest.raises(ProgramFailed):
        plugin.parse(plugin.options(), completed(1, printed))


def test_the_reference_repeats_what_report_json_says_of_itself():
    assert inspect.getdoc(report_json) in (ROOT / "docs/reference.md").read_text()


def test_the_reference_lists_every_exit_code():
    listed = (ROOT / "docs/reference.md").read_text()
    codes = {
        value.exit_code
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.WeighbridgeError)
    }
    assert codes <= {int(code) for code in re.findall(r"^\| (\d+) \|", listed, re.MULTILINE)}
