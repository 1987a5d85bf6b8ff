"""Two tables of the tested machines: what works, for users, and each test with its time and commit.

`python -m tests.machines.table` rewrites docs/reference/machines.md and README.md in this folder from results.jsonl,
to which every run of `make test-machines` appends.
"""

import json
from pathlib import Path

from .rows import EACH_USER, MACHINES, NOT_TRIED, USERS, WHOLE_MACHINE

HERE = Path(__file__).parent
RESULTS, DETAILS = HERE / "results.jsonl", HERE / "README.md"
REFERENCE = HERE.parents[1] / "docs/reference/machines.md"
BEGIN, END = "<!-- by python -m tests.machines.table -->\n", "<!-- end of the table -->\n"
ROWS = {**EACH_USER, **WHOLE_MACHINE}

Outcomes = dict[tuple[str, str, str], list[dict]]


def latest(lines: list[str]) -> Outcomes:
    """Return the last records of each machine, user and test: several where a test has parameters."""
    outcomes: Outcomes = {}
    for number, record in enumerate(map(json.loads, lines)):
        record["number"] = number  # a day has many commits
        key = (record["machine"], record["user"], record["test"])
        others = [each for each in outcomes.get(key, []) if each.get("case") != record.get("case")]
        outcomes[key] = [*others, record]
    return outcomes


def summary(outcomes: Outcomes) -> str:
    """Return the table for users: whether Weighbridge works on each machine for each user, and known problems."""
    lines = [f"| machine | {' | '.join(user.summary for user in USERS.values())} |", "|---" * (len(USERS) + 1) + "|"]
    for machine, what in MACHINES.items():
        tried = {user: [each for test in ROWS for each in outcomes.get((machine, user, test), [])] for user in USERS}
        lines.append(f"| {what} | {' | '.join(map(_state, tried.values()))} |")
    failures = _failures(outcomes)
    lines += ["", "Known problems:", "", *(failures or ["- None on these machines."])]
    lines += ["", "Not tried, with the differences that we expect:", ""]
    lines += [f"- {what}: {difference}." for what, difference in NOT_TRIED.items()]
    return "\n".join(lines) + "\n"


def _state(records: list[dict]) -> str:
    if not records:
        return "not tried"
    return "works" if all(each["outcome"] == "passed" for each in records) else "problems"


def table(outcomes: Outcomes) -> str:
    """Return the table for developers: the time and the commit of every test, by machine and user."""
    lines = [
        f"| machine | as | {' | '.join(ROWS.values())} | last tried, at commits |",
        "|---" * (len(ROWS) + 3) + "|",
        f"| test in `tests/machines/` | | {' | '.join(f'`{test}`' for test in ROWS)} | |",
    ]
    for machine, what in MACHINES.items():
        for user, who in USERS.items():
            records = {test: outcomes.get((machine, user, test), []) for test in ROWS}
            cells = [_cell(records[test], user, test) for test in ROWS]
            tried = sorted((each for group in records.values() for each in group), key=lambda each: each["number"])
            commits = dict.fromkeys(f"`{each['commit']}`" for each in tried)  # a cell that passed is not tried again
            when = f"{tried[-1]['date']}, {', '.join(commits)}" if tried else ""
            lines.append(f"| {what} | {who.summary} | {' | '.join(cells)} | {when} |")
    lines += [f"| {what} | | {' | '.join(['not tried'] * len(ROWS))} | |" for what in NOT_TRIED]
    if failures := _failures(outcomes):
        lines += ["", "What failed:", "", *failures]
    return "\n".join(lines) + "\n"


def _failures(outcomes: Outcomes) -> list[str]:
    return [
        f"- {MACHINES[machine].split(' (')[0]}, {USERS[user].summary}, {ROWS[test]}: {_first(each['failure'])}"
        for (machine, user, test), group in sorted(outcomes.items())
        for each in group
        if each["outcome"] == "failed"
    ]


def written(document: str, content: str) -> str:
    """Return the document with the content between the two marks."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def _cell(records: list[dict], user: str, test: str) -> str:
    if not records:
        return "" if test in WHOLE_MACHINE and user != "root" else "not tried"
    bad = [each for each in records if each["outcome"] != "passed"]
    return "failed" if bad else f"{sum(each['seconds'] for each in records)} s"


def _first(failure: str) -> str:
    """Return the sentence of a failure, on one line of a page."""
    text = " ".join(failure.removeprefix("AssertionError: ").split())
    return f"`{text[:300].replace('`', chr(39))}`"


if __name__ == "__main__":
    outcomes = latest(RESULTS.read_text().splitlines())
    REFERENCE.write_text(written(REFERENCE.read_text(), summary(outcomes)))
    DETAILS.write_text(written(DETAILS.read_text(), table(outcomes)))
