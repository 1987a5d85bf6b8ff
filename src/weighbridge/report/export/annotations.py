"""A gate as remarks beside the code: workflow commands of GitHub, code quality of GitLab."""

import hashlib
import json
from collections.abc import Sequence

from weighbridge.report.text.gate import GateRow

_COMMANDS = {"failed": "error", "undecided": "warning", "passed": "notice"}
_SEVERITIES = {"failed": "major", "undecided": "minor"}


def github_commands(rows: Sequence[GateRow]) -> str:
    """Return a workflow command for each comparison, a line each.

    Escaped as GitHub's own toolkit does: ``%``, CR and LF in the message, and ``:`` and ``,`` in the title, too.
    """
    return "".join(
        f"::{_COMMANDS[row.outcome]} title={_property(f'weighbridge gate {row.outcome}')}::{_data(row.sentence)}\n"
        for row in rows
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def gitlab_code_quality(rows: Sequence[GateRow], path: str) -> str:
    """Return GitLab's code quality report: a JSON list of what is not within its budget.

    ``path``: the file at which GitLab shows it. A fingerprint tells a finding from others, whatever the numbers are.
    """
    found = [
        {
            "description": row.sentence,
            "check_name": "weighbridge-gate",
            "fingerprint": _fingerprint(row, path),
            "severity": _SEVERITIES[row.outcome],
            "location": {"path": path, "lines": {"begin": 1}},
        }
        for row in rows
        if row.outcome in _SEVERITIES
    ]
    return json.dumps(found, indent=2) + "\n"


def _fingerprint(row: GateRow, path: str) -> str:
    told = "\0".join((path, row.name, row.budget, "change" if row.change else "cost"))
    return hashlib.sha256(told.encode(errors="surrogateescape")).hexdigest()
