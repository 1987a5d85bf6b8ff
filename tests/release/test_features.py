"""Every feature can be removed with its folder."""

import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import weighbridge

SOURCE = Path(weighbridge.__file__).parent
KEPT_RUN = SOURCE.parents[1] / "docs/runs/weigh.sqlite.xz"
FEATURES = sorted(path.parent.name for path in SOURCE.glob("features/*/__init__.py"))
_OF_FLEETS = ("kubernetes/fleets", "slurm/fleets")
USED_BY = {"fleets": _OF_FLEETS, "gate": ("fleets", *_OF_FLEETS), "replication": ("kit",)}
"""The features, or parts of them, that use another feature and are removed with it."""
USE_THE_REST = """
import pkgutil, sys
from importlib import import_module
import weighbridge
from weighbridge.cli.app import app

for module in pkgutil.walk_packages(weighbridge.__path__, "weighbridge."):
    if not module.name.endswith(("__main__", ".console", ".agent.agent")):
        import_module(module.name)
for words in (["--help"], ["run", "--help"], ["weigh", "--help"], ["schema", "report"], ["report", sys.argv[1]]):
    app(words, prog_name="weighbridge", standalone_mode=False)
"""


@pytest.mark.real
@pytest.mark.side_by_side
@pytest.mark.parametrize("name", FEATURES)
def test_the_rest_works_without_a_feature(name: str, tmp_path: Path):
    shutil.copytree(SOURCE, tmp_path / "weighbridge")  # and what is compiled
    for removed in (name, *USED_BY.get(name, ())):
        shutil.rmtree(tmp_path / "weighbridge/features" / removed)
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.sqlite").write_bytes(lzma.decompress(KEPT_RUN.read_bytes()))
    ended = subprocess.run(
        (sys.executable, "-c", USE_THE_REST, run), cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert str(tmp_path) in ended.stdout and (run / "report.html").exists()
