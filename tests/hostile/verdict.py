"""Whether a command ended as it should: in time, with a documented code, and with one sentence."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TIME_LIMIT_S = 45.0
"""How long a command may take on a busy machine: all of them end by themselves, most within a second."""
LINES = 40
"""The most lines of standard error: what a run says while it goes on included."""
LETTERS = 2000
"""The longest line of standard error."""
_TABLE = Path(__file__).parents[2] / "docs/reference/exit-codes.md"
_STUDY = 3
"""A wrong study is told with a sentence for each of its mistakes."""
_NO_FAILURE = {0, 2, 9, 10, 11, 12}
"""Codes that come after a report, or after the usage of a command."""
_CODE_1_WITHOUT_SENTENCE = ("clean", "fleet drive")
FOREIGN = (
    "Traceback", "Input should be", "Field required", "Extra inputs", "validation error", "Value error",
    "For further information", "should be a valid", "should have at", "Invalid JSON", "Unable to ", "type=",
    "pydantic", "<class '", "object at 0x", "Error(", "KeyError", "TypeError", "ValueError", "recursion",
    "must be of type", "expected string", "sqlite3.", "no such column", "no such table", "datatype mismatch",
    "Expecting ", "Extra data", "(char ", "Errno", "codec can't",
)  # fmt: skip
"""Words of Python and of libraries, which no user should read."""
_ORDERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Ended:
    """What a command did. ``code``: None where it did not end in time."""

    code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float


@cache
def documented_codes() -> frozenset[int]:
    """Return the exit codes of the reference."""
    return frozenset(int(code) for code in re.findall(r"^\| (\d+) \|", _TABLE.read_text(), re.MULTILINE))


def faults_of(line: str, ended: Ended) -> list[str]:
    """Return a sentence for each thing that is wrong with how a command ended; ``line`` is the command's."""
    if ended.code is None:
        return [f"it did not end within {TIME_LIMIT_S:g} s"]
    faults = []
    if ended.code not in documented_codes():
        faults.append(f"its exit code {ended.code} is not documented")
    try:
        told, printed = ended.stderr.decode(), ended.stdout.decode()
    except UnicodeDecodeError:
        return [*faults, "its output is not UTF-8"]
    lines = told.splitlines()
    if len(lines) > LINES:
        faults.append("it prints too many lines to standard error")
    if any(len(each) > LETTERS for each in lines):
        faults.append("it prints too long a line to standard error")
    faults += [f"it says '{words}'" for words in FOREIGN if words in told]
    if _ORDERS.search(told.replace("\t", "").replace("\n", "")):
        faults.append("it prints control characters to standard error")
    if "--svg" not in line and _ORDERS.search(printed.replace("\t", "").replace("\n", "").replace("\r\n", "")):
        faults.append("it prints control characters to standard output")
    sentences = [each for each in lines if each.startswith("weighbridge: ") and "to continue: " not in each]
    is_list = ended.code == 1 and line.startswith(_CODE_1_WITHOUT_SENTENCE)
    is_told = len(sentences) == 1 or (ended.code == _STUDY and sentences)
    if not (ended.code in _NO_FAILURE or is_told or is_list):
        faults.append(f"it ends with code {ended.code} and {len(sentences)} sentences")
    if ended.code == 0 and sentences:
        faults.append("it ends with code 0 and an error")
    if ("--json" in line or "--github-action-benchmark" in line) and ended.code == 0:
        try:
            json.loads(printed, parse_constant=_refuse)
        except ValueError:
            faults.append("what it prints is not JSON")
    return faults


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
