"""One release for all tests of it."""

import shutil
import sys
from pathlib import Path

import pytest

from .released import ROOT, must, new_environment, wheel_in


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with what `make dist` builds of this checkout, and what that says."""
    if shutil.which("aarch64-linux-gnu-gcc") is None:
        pytest.skip("needs aarch64-linux-gnu-gcc")
    out = tmp_path_factory.mktemp("release") / "dist"
    return out, must(sys.executable, ROOT / "scripts/dist.py", "--dirty", "--out", out)


@pytest.fixture(scope="session")
def program(release: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`weighbridge` of the wheel for this machine, in a virtual environment of its own."""
    return new_environment(tmp_path_factory.mktemp("installed") / "venv", wheel_in(release[0]))
