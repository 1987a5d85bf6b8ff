"""A gate as a JUnit report, which CI systems show as tests: each comparison is one."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from weighbridge.report.text.gate import GateRow

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ENDS: dict[str, str] = {"failed": "failure", "undecided": "error"}
"""What is over its budget is a test that failed; what cannot be told is one that could not be carried out."""


def junit_xml(study: str, rows: Sequence[GateRow]) -> bytes:
    """Return the report of one test suite, called after the study, as UTF-8."""
    counts = {
        "tests": len(rows),
        "failures": sum(row.outcome == "failed" for row in rows),
        "errors": sum(row.outcome == "undecided" for row in rows),
    }
    numbers = {key: str(value) for key, value in counts.items()}
    root = ET.Element("testsuites", {"name": "weighbridge gate", **numbers})
    suite = ET.SubElement(root, "testsuite", {"name": _text(study), **numbers, "skipped": "0", "time": "0"})
    for row in rows:
        named = f"{row.name}{' change' if row.change else ''} {row.budget}"
        case = ET.SubElement(suite, "testcase", {"classname": _text(study), "name": _text(named), "time": "0"})
        if (end := _ENDS.get(row.outcome)) is not None:
            ET.SubElement(case, end, {"type": row.outcome, "message": _text(row.sentence)}).text = _text(row.sentence)
        else:
            ET.SubElement(case, "system-out").text = _text(row.sentence)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _text(text: str) -> str:
    """The text with what XML 1.0 has no way to write replaced."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text.replace("\N{NO-BREAK SPACE}", " "))
