"""What is mounted on this machine, from the kernel's table."""

from pathlib import Path

import pytest

from weighbridge.linux import folders

TABLE = r"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
90 22 0:50 / /cache/engines/a1/data-0 rw,relatime - tmpfs tmpfs rw,size=1024k
91 90 7:0 / /cache/engines/a1/data-0/with\040space rw,relatime - xfs /dev/loop0 rw
92 22 0:51 / /cache/engines/a12 rw,relatime - tmpfs tmpfs rw
93 22 0:52
"""


def test_the_inner_ones_come_first_and_no_neighbour(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: TABLE)
    found = folders.mounted_below(Path("/cache/engines/a1"))
    assert found == [Path("/cache/engines/a1/data-0/with space"), Path("/cache/engines/a1/data-0")]
