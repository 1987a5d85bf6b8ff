"""The tables of machines, for users and for developers, are those of the recorded results."""

import json
import re
import shutil
from pathlib import Path

import pytest

from machines import carried, images, rows, table

HERE = Path(__file__).parent / "machines"


def functions(module: str) -> set[str]:
    return set(re.findall(r"^def (test_\w+)", (HERE / module).read_text(), re.MULTILINE))


def test_each_row_is_a_test_and_each_test_a_row():
    assert functions("test_each_user.py") == {*rows.EACH_USER}
    assert functions("test_whole_machine.py") == {*rows.WHOLE_MACHINE}


def test_the_table_is_what_the_results_say():
    outcomes = table.latest(table.RESULTS.read_text().splitlines())
    for machine, user, test in outcomes:
        assert machine in rows.MACHINES and user in rows.USERS and test in table.ROWS, (machine, user, test)
    for page, content in ((table.REFERENCE, table.summary(outcomes)), (table.DETAILS, table.table(outcomes))):
        document = page.read_text()
        assert document == table.written(document, content), "run python -m tests.machines.table"


def record(test="test_weigh", outcome="passed", case="", **further):
    values = {"machine": "sid", "user": "root", "test": test, "outcome": outcome, "seconds": 7, "commit": "abc"}
    return json.dumps({**values, "date": "2026-11-25", "failure": "", "case": case, **further})


def cells(text: str, machine: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if machine in line]


def test_a_later_outcome_replaces_an_earlier_one_and_a_failure_is_told():
    failed = record(outcome="failed", failure="AssertionError: a `traceback`\n  in it")
    text = table.table(table.latest([record(), failed]))
    root = cells(text, rows.MACHINES["sid"])[0]
    assert root[2 + list(table.ROWS).index("test_weigh")] == "failed"
    assert root[-1] == "2026-11-25, `abc`" and "`weigh`: `a 'traceback' in it`" in text
    for_users = table.summary(table.latest([record("test_doctor"), failed]))
    assert cells(for_users, rows.MACHINES["sid"])[0][1:3] == ["problems", "not tried"]
    assert "`weigh`: `a 'traceback' in it`" in for_users
    assert "failed" not in table.table(table.latest([failed, record()])).replace("What failed", "")


def test_a_row_names_the_commits_of_all_of_its_cells():
    text = table.table(
        table.latest([record(), record("test_doctor", commit="def"), record("test_doctor", commit="0a")])
    )
    assert cells(text, rows.MACHINES["sid"])[0][-1] == "2026-11-25, `abc`, `0a`"


def test_one_failed_case_is_a_failed_row_and_none_hides_another():
    test = "test_system_containers"
    both = table.latest([record(test, case="lxc", outcome="failed"), record(test, case="podman")])
    assert [each["outcome"] for each in both["sid", "root", test]] == ["failed", "passed"]
    assert cells(table.table(both), rows.MACHINES["sid"])[0][2 + [*table.ROWS].index(test)] == "failed"


@pytest.mark.parametrize("what", rows.NOT_TRIED)
def test_what_was_not_tried_says_so_and_what_may_differ(what):
    assert set(cells(table.table({}), f"| {what} |")[0][2:-1]) == {"not tried"}
    assert f"- {what}: {rows.NOT_TRIED[what]}." in table.summary({})


def test_an_image_is_built_anew_when_what_it_is_made_of_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    keys = {images.image_key(kind, "a key") for kind in images.MACHINES} | {images.image_key("sid", "another key")}
    shutil.copytree(HERE / "packages", tmp_path / "packages")
    shutil.copy(HERE / "recipe.sh", tmp_path)
    monkeypatch.setattr(images, "HERE", tmp_path)
    assert images.image_key("sid", "a key") in keys
    for source in ("recipe.sh", "packages/sid.txt"):
        with (tmp_path / source).open("a") as file:
            file.write(" more\n")
        assert images.image_key("sid", "a key") not in keys
        keys.add(images.image_key("sid", "a key"))


def test_every_machine_has_an_image_and_wheels():
    assert {*rows.MACHINES} == {*images.MACHINES}
    assert {images.suite_of(kind) for kind in images.MACHINES} == {*carried.PYTHONS}
    for kind in images.MACHINES:
        assert {"pipx", "docker.io", "podman", "systemd-sysv"} <= {*images.packages(kind)}
        assert f"linux-image-cloud-{images.architecture_of(kind)}" in images.packages(kind)
