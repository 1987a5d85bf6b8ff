"""In how many sites a workload runs: one number or a sweep of it, the same in every environment."""

import pytest

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.model.study import Study
from weighbridge.study.loader import check
from weighbridge.study.source import parse

TEXT = """
study: several
question: Do they add up?
baseline: native
environments:
  native: {kind: native}
  other: {kind: ENVIRONMENT}
workloads:
  cpu: {kind: KIND}
"""


def made(kind: str, environment: str = "docker, network: none") -> Study:
    return check(parse(TEXT.replace("KIND", kind).replace("ENVIRONMENT", environment), "several.yaml"))


@pytest.mark.parametrize("asked", ["0", "101", "many", "true", "1.5", "[]", "[1, 0]", "[2, 2]"])
def test_numbers_that_cannot_be(asked: str):
    with pytest.raises(StudyError, match=r"several\.yaml:9: sites: "):
        made(f"sysbench-cpu, sites: {asked}")


def test_what_measures_one_thing_after_another_is_in_one_site():
    assert made("bonnie, sites: 1").cells[0].sites == 1
    with raises_sentence(StudyError):
        made("bonnie, sites: [1, 2]")


@pytest.mark.parametrize(
    ("asked", "speeds"), [("hdd-like", ["hdd-like"]), ("[null, ssd-like]", [None, "ssd-like"]), ("null", [None])]
)
def test_speeds_of_disks(asked: str, speeds: list[str | None]):
    text = TEXT.replace("KIND", f"sysbench-cpu, disk_speed: {asked}").replace("  other: {kind: ENVIRONMENT}\n", "")
    cells = check(parse(text + "hosts: {a: {kind: guest}}\n", "several.yaml")).cells
    assert [cell.disk_speed for cell in cells] == speeds
    swept = [{"disk_speed": speed or "none"} for speed in speeds] if len(speeds) > 1 else [{}]
    assert [dict(cell.level) for cell in cells] == swept


def test_a_disk_of_this_machine_stays_as_it_is():
    with raises_sentence(StudyError):
        made("sysbench-cpu, disk_speed: hdd-like")


def test_what_has_a_counterpart_cannot():
    with raises_sentence(StudyError):
        made("iperf3, sites: 2")


def test_an_option_of_that_name_is_the_kinds_own():
    (cell,) = made("density, sites: 3").cells
    assert (cell.sites, cell.options.sites) == (1, 3)


def test_it_is_the_same_in_every_environment():
    with raises_sentence(StudyError):
        made("sysbench-cpu", "docker, network: none, workloads: {cpu: {sites: 2}}")
