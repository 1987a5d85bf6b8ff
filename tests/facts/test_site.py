"""What every kind of site says of itself, read through the site."""

from types import SimpleNamespace

import pytest

from weighbridge.facts.site import about_site
from weighbridge.model.facts import KERNEL, OPEN_FILES


def site(**files: bytes) -> SimpleNamespace:
    """A site that has these files, by the last part of their names."""

    def read(path: str) -> bytes:
        name = path.rpartition("/")[2]
        if name not in files:
            raise FileNotFoundError(2, "No such file or directory")
        return files[name]

    return SimpleNamespace(read=read, open_files=1024)


@pytest.mark.parametrize("release", ["6.1.0-44-amd64", "4.4.0"])
def test_the_kernel_is_the_one_that_the_site_tells(release: str):
    found = about_site(site(osrelease=f"{release}\n".encode(), somaxconn=b"4096\n"))
    assert found[KERNEL] == release
    assert found["backlog of a listener"] == "4096 (net.core.somaxconn)"
    assert found["packages"] == "unreadable: No such file or directory"


def test_an_unreadable_kernel_is_omitted():
    """It is no other kernel than the baseline's."""
    found = about_site(site())
    assert KERNEL not in found and found[OPEN_FILES] == "1024"
