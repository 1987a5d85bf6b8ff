"""How many processes a group may have: the least limit of it and of those above."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weighbridge.linux.cgroup_files import process_limit

SCOPE = "user.slice/user-1000.slice/user@1000.service/app.slice/weighbridge-0123456789ab-7.scope"


def reader(group: str) -> Callable[[str], bytes]:
    """Reads files; a process is in ``group``."""
    return lambda path: group.encode() if path.startswith("/proc/") else Path(path).read_bytes()


@pytest.fixture(params=[1, 2])
def mount(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A hierarchy, of version 2 or of version 1, as systemd makes it: only a user's slice has a limit."""
    base = tmp_path if request.param == 2 else tmp_path / "pids"
    (base / SCOPE / "weighbridge/site").mkdir(parents=True)
    (tmp_path / ("cgroup.controllers" if request.param == 2 else "cpu")).mkdir()
    for name, limit in (("user.slice", "max"), ("user.slice/user-1000.slice", "10813"), (SCOPE, "max")):
        (base / name / "pids.max").write_text(f"{limit}\n")
    (base / "system.slice/docker-1.scope").mkdir(parents=True)
    (base / "system.slice/docker-1.scope/pids.max").write_text("max\n")
    return tmp_path


def limit(mount: Path, group: str) -> int | None:
    version_2 = (mount / "cgroup.controllers").exists()
    return process_limit(reader(f"{'0:' if version_2 else '8:pids'}:/{group}\n"), 4711, mount)


def test_the_limit_of_a_group_above_holds(mount: Path):
    assert limit(mount, f"{SCOPE}/weighbridge/site") == 10813


def test_without_any_there_is_none(mount: Path):
    assert limit(mount, "system.slice/docker-1.scope") is None
    assert limit(mount, "") is None


def test_what_cannot_be_told_is_not_taken_for_no_limit(mount: Path):
    with pytest.raises(OSError, match="no control group counts the processes"):
        process_limit(reader("3:cpuset:/\n"), 4711, mount)
