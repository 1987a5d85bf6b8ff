"""The wheel installed by pip, pipx and uv, each with the dependencies that it takes from the package index."""

import os
import sys
import venv
from pathlib import Path

import pytest

from downloads import download

from .released import ROOT, must, path_of, wheel_in
from .test_release import NAMED

pytestmark = [
    pytest.mark.real,
    pytest.mark.long,
    pytest.mark.promise("pip, pipx and uv install the wheel, and what they install measures"),
]
INSTALL = {
    "pip": ("pip", "install", "--quiet"),
    "pipx": ("pipx", "install"),
    "uv": ("uv", "tool", "install", "--quiet"),
}


@pytest.mark.parametrize("installer", INSTALL)
def test_what_it_installs_measures(installer: str, release: tuple[Path, str], tmp_path: Path):
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv/bin"
    if installer != "pip":
        download((programs / "python", "-m", "pip", "install", "--quiet", installer))
    folders = {
        "PIPX_HOME": "pipx",
        "PIPX_BIN_DIR": "bin",
        "UV_TOOL_DIR": "uv",
        "UV_TOOL_BIN_DIR": "bin",
        "HOME": "home",
    }
    env = {**os.environ, **{name: str(tmp_path / folder) for name, folder in folders.items()}}
    (tmp_path / "home").mkdir()
    env |= {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "UV_CONSTRAINT": str(ROOT / "constraints.txt")}
    env |= {"UV_PYTHON": sys.executable, "UV_HTTP_TIMEOUT": "180", "PIPX_DEFAULT_PYTHON": sys.executable}
    download((programs / INSTALL[installer][0], *INSTALL[installer][1:], wheel_in(release[0])), env=env)
    program = (programs if installer == "pip" else tmp_path / "bin") / "weighbridge"
    alone = {"HOME": str(tmp_path / "home"), "PATH": str(path_of(tmp_path / "path", *NAMED))}
    assert "(built with this package, for " in must(program, "--version", env=alone)
    weigh = ("weigh", "--in", "netns", "--blocks", "1", "--rehearsal", "--beside-others", "--out", tmp_path / "run")
    must(
        program, *weigh, "--cpu-idle", "halt", "--", "true", env=alone, cwd=tmp_path
    )  # what else is in /tmp a site hides
    assert (tmp_path / "run/report.html").stat().st_size > 10_000
