"""Studies whose workloads start sites, or start programs in open ones: where that is not possible."""

import pytest

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.model.study import Study
from weighbridge.study.loader import check
from weighbridge.study.source import parse

TEXT = """
study: starts
question: What does it take to start?
baseline: native
environments:
  native: {kind: native}
  other: {kind: ENVIRONMENT}
workloads:
  life: {kind: KIND}
"""


def made(kind: str, environment: str) -> Study:
    return check(parse(TEXT.replace("KIND", kind).replace("ENVIRONMENT", environment), "starts.yaml"))


@pytest.mark.parametrize(
    "environment", ["netns", "bubblewrap", "docker, network: none", "podman, network: none", "podman, rootless: true"]
)
def test_commands_in_open_sites_where_the_host_can_enter_them(environment: str):
    assert [cell.kind for cell in made("exec", environment).cells] == ["exec"]


@pytest.mark.parametrize("environment", ["qemu", "lxc", "apptainer"])
def test_commands_in_sites_that_the_host_cannot_enter(environment: str):
    with raises_sentence(StudyError):
        made("exec", environment)


def test_commands_in_several_sites_at_a_time():
    with raises_sentence(StudyError):
        made("exec, sites: 2", "docker, network: none")


def test_a_burst_where_sites_open_one_after_the_other():
    with raises_sentence(StudyError):
        made("burst", "podman, network: none")
    assert made("boot", "podman, network: none").cells


@pytest.mark.parametrize("environment", ["native", "bubblewrap", "apptainer"])
def test_additional_files_where_no_image_is_built(environment: str):
    with raises_sentence(StudyError):
        made_next_to("image_files: 64MiB", environment)
    assert made_next_to("image_files: 0B", environment).cells


@pytest.mark.parametrize("environment", ["docker, network: none", "podman, network: none"])
def test_additional_files_in_an_image_that_is_built(environment: str):
    assert made_next_to("image_files: 64MiB", environment).cells


def made_next_to(option: str, environment: str) -> Study:
    """A study in which only the environment ``other`` has the option."""
    own = f"{environment}, workloads: {{life: {{{option}}}}}"
    return made("boot", own)


def test_each_number_at_once_is_a_level():
    levels = [dict(cell.level) for cell in made("burst, at_once: [2, 8]", "bubblewrap").cells]
    assert levels == [{"at_once": "2"}, {"at_once": "8"}]
    levels = [dict(cell.level) for cell in made("boot, ports: [0, 8]", "docker, network: bridge").cells]
    assert levels == [{"ports": "0"}, {"ports": "8"}]
    both = TEXT.replace("{kind: native}", "{kind: podman, network: none}")
    sizes = check(
        parse(
            both.replace("ENVIRONMENT", "docker, network: none").replace("KIND", "boot, image_files: [0B, 64MiB]"),
            "starts.yaml",
        )
    )
    assert [cell.options.image_files for cell in sizes.cells] == [0, 64 * 2**20]
