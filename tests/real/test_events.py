"""A weighing for a program: one document on standard output, and events alone on standard error."""

import json
from pathlib import Path
from typing import Any

import pytest

from documents import fits
from weighbridge.cli.commands.studies import SchemaDocument

from .weighing import weighbridge


@pytest.mark.parametrize(("program", "code"), [("true", 0), ("false", 9)])
def test_a_weighing_is_a_document_and_events(tmp_path: Path, program: str, code: int):
    done = weighbridge(
        "weigh", "--out", tmp_path / "run", "--cpu-idle", "halt", "--rounds", 6, "--json", "--progress", "json",
        "--against", "true", "--", program,
    )  # fmt: skip
    assert done.code == code, done
    document = json.loads(done.stdout)
    fits(SchemaDocument.REPORT, document)
    assert document["directory"] == str(tmp_path / "run") and document["baseline"] == "before"
    events: list[dict[str, Any]] = [json.loads(line) for line in done.stderr.splitlines()]
    for each in events:
        fits(SchemaDocument.PROGRESS, each)
    names = [each["event"] for each in events]
    assert names.count("begin") == names.count("end") == 1 and names[-1] == "end" and "progress" in names
    assert events[-1]["exit_code"] == code and ("warning" in names) == (program == "false")
