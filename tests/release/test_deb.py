"""`make deb`: the package is built, installed in a fresh Debian, weighs there, and leaves nothing when it goes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .released import ROOT, must, run

pytestmark = [
    pytest.mark.real,
    pytest.mark.long,
    pytest.mark.promise("the Debian package installs in a fresh Debian, measures, and leaves nothing"),
]
SUITE = "bookworm"
_DEPENDENCIES = "python3,iproute2,libstdc++6"
_ENTER = """set -e; root=$1; shift
mount --bind "$root" "$root"; cd "$root"  # a site's namespace is made where the root folder is a mount point
mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"; mount --rbind /sys "$root/sys"
exec chroot "$root" env -i -C /root HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
"""
INSTALLED = (
    "usr/bin/weighbridge",
    "usr/lib/weighbridge",
    *(f"usr/share/{name}" for name in ("man/man1/weighbridge.1.gz", "doc/weighbridge/copyright")),
    "usr/share/bash-completion/completions/weighbridge",
    "usr/share/zsh/vendor-completions/_weighbridge",
    "usr/share/fish/vendor_completions.d/weighbridge.fish",
)

Enter = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Enter]]:
    """A new Debian in a folder with the package in its root folder, and a function that runs a command there."""
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip("needs root and mmdebstrap")
    folder = tmp_path_factory.mktemp("debian")
    assert "scripts/deb.py" in must("make", "-n", "deb", cwd=ROOT)
    must(sys.executable, ROOT / "scripts/deb.py", "--out", folder)
    (package,) = folder.glob("weighbridge_*_amd64.deb" if os.uname().machine == "x86_64" else "weighbridge_*.deb")
    root = folder / "root"
    must("mmdebstrap", "--quiet", "--variant=apt", f"--include={_DEPENDENCIES}", SUITE, root)
    shutil.move(package, root / "weighbridge.deb")
    namespaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child")

    def enter(*argv: str) -> "subprocess.CompletedProcess[str]":
        return run(*namespaces, "sh", "-c", _ENTER, "enter", root, *argv)

    yield root, enter
    shutil.rmtree(root)


def test_it_is_installed_measures_and_goes(debian: tuple[Path, Enter]):
    root, enter = debian
    done = enter("dpkg", "--install", "/weighbridge.deb")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [name for name in INSTALLED if not (root / name).exists()] == []
    assert list((root / "usr/lib/weighbridge").rglob("*.pyc"))
    told = enter("weighbridge", "--version")
    assert told.returncode == 0 and "(built with this package, for " in told.stdout, told.stderr
    weigh = ("weigh", "--in", "netns", "--blocks", "1", "--rehearsal", "--beside-others", "--out", "/root/run")
    told = enter("weighbridge", *weigh, "--cpu-idle", "halt", "--", "true")
    assert told.returncode == 0, told.stderr
    assert (root / "root/run/report.html").stat().st_size > 10_000
    done = enter("dpkg", "--purge", "weighbridge")
    assert done.returncode == 0, done.stderr
    assert [name for name in INSTALLED if (root / name).exists()] == []
