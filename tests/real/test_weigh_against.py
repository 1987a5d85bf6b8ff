"""`weighbridge weigh --against`: an older program or image in the same blocks; each environment runs its own."""

from pathlib import Path

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.store.run import RunStore

from .machine import Machine
from .test_weigh import SERVER, save_image, values, weigh

VERSION = r"""
#include <stdio.h>
int main(int count, char **words) { printf("version=%d words=%d\n", OLD ? 1 : 2, count); return 0; }
"""
METRICS = (
    "--metric",
    r"version=regex:version=(\d+),higher,count",
    "--metric",
    r"words=regex:words=(\d+),higher,count",
)


def test_an_older_program_of_this_machine(tmp_path: Path, machine: Machine):
    for name in ("old", "new"):
        (tmp_path / name).write_text(f"echo version={1 if name == 'old' else 2} words=0\n")
    done = weigh(tmp_path, "--blocks", "2", *METRICS, "--against", "sh old", "--", "sh", "new")
    assert done.returncode == 0, done.stderr
    assert values(tmp_path, "version") == {"before": [1.0] * 2, "before-again": [1.0] * 2, "after": [2.0] * 2}


@pytest.mark.parametrize("inside", ["docker", "native"])
def test_an_older_image_with_an_entry_point_of_its_own(tmp_path: Path, machine: Machine, inside: str):
    _images(tmp_path, VERSION)
    done = weigh(
        tmp_path, "--in", inside, "--blocks", "2", *METRICS, "--image", "shop.tar", "--against", "old.tar", "--", "x"
    )
    assert done.returncode == 0, done.stderr
    assert values(tmp_path, "version") == {"before": [1.0] * 2, "before-again": [1.0] * 2, "after": [2.0] * 2}
    assert values(tmp_path, "words") == {"before": [3.0] * 2, "before-again": [3.0] * 2, "after": [2.0] * 2}
    with RunStore(tmp_path / "run") as store:
        analysis = analyse(store)
    told = [each for each in analysis.confounders if getattr(each, "environment", "") == "after"]
    assert "userland" in {getattr(each, "fact", "") for each in told}


def test_the_server_of_an_older_image(tmp_path: Path, machine: Machine):
    """Both are asked by the same client of this machine."""
    _images(tmp_path, SERVER.replace("count != 3", "0").replace('"7"', 'OLD ? "5" : "7"'))
    client = "import socket, sys; print('version=', socket.create_connection(sys.argv[1:]).recv(1).decode(), sep='')"
    done = weigh(
        tmp_path, "--blocks", "2", *METRICS[:2], "--image", "shop.tar", "--against", "old.tar", "--server", "{port}",
        "--", "/usr/bin/python3", "-c", client, "{address}", "{port}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert values(tmp_path, "version") == {"before": [5.0] * 2, "before-again": [5.0] * 2, "after": [7.0] * 2}


def _images(folder: Path, text: str) -> None:
    """``shop.tar`` and ``old.tar``, whose entry point has one word more."""
    for old, entry_point in ((1, ("/shop", "-v")), (0, ("/shop",))):
        save_image(folder, f"#define OLD {old}\n{text}", entry_point)
        if old:
            (folder / "shop.tar").rename(folder / "old.tar")
