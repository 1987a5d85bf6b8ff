"""Which failures of a download are a registry's, and which are ours."""

import pytest

from downloads import no_answer

REFUSED = "npm error code ECONNREFUSED"
RETRIES = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(': [Errno -3] Temporary"


@pytest.mark.parametrize(
    "line",
    [REFUSED, RETRIES, "npm error code E503", "npm ERR! code EAI_AGAIN", "pip: HTTP error 502"],
)
def test_a_registry_that_does_not_answer(line: str):
    assert no_answer(f"{line}\nnpm error A complete log of this run can be found in /log") == line


@pytest.mark.parametrize(
    "line",
    ["npm error code E404", "npm error code ETARGET", "npm error code EJSONPARSE",
     "ERROR: Could not find a version that satisfies the requirement weighbridge-none", ""],
)  # fmt: skip
def test_a_mistake_of_ours(line: str):
    assert no_answer(line) == ""
