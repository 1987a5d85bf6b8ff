"""Whether a user's processes can have as many files open as a study gives them."""

import resource
from types import SimpleNamespace

import pytest

from weighbridge.linux import open_files
from weighbridge.linux.open_files import too_many_open_files

RESOURCE = "CapEff:\t0000000001000000\n"


@pytest.mark.parametrize(
    ("wanted", "capabilities", "refused"),
    [
        (None, "", ""),
        (1000, "", ""),
        (1001, "CapEff:\t0000000000000000\n", "this user"),
        (1001, "", "this user"),
        (1001, RESOURCE, ""),
        (5000, RESOURCE, ""),
        (5001, RESOURCE, "the kernel"),
    ],
)
def test_what_a_user_and_the_kernel_allow(
    monkeypatch: pytest.MonkeyPatch, wanted: int | None, capabilities: str, refused: str
):
    files = {"/proc/sys/fs/nr_open": "5000\n", "/proc/self/status": capabilities}
    monkeypatch.setattr(open_files, "Path", lambda path: SimpleNamespace(read_text=lambda: files[path]))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, 1000))
    refusal = too_many_open_files(wanted)
    assert (refusal is None) == (not refused)
    assert refusal is None or (refused in refusal.detail and not refusal.ready and refusal.remedy)
