"""What the groups above a site's own leave it: how many processes, how much CPU time and memory, and beside whom."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from sentences import raises_sentence
from weighbridge.launcher.site import group_facts
from weighbridge.linux import cgroup_files
from weighbridge.linux.cgroup_files import GroupLimits, limits_above, limits_in_force, outermost_group, process_limit
from weighbridge.model.facts import CPU_LIMIT, LIMITS_ABOVE, MEMORY_LIMIT, OUTERMOST_GROUP, PROCESSES

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
    with raises_sentence(OSError):
        process_limit(reader("3:cpuset:/\n"), 4711, mount)


OWN = ("50000", "268435456")
"""What a study asks for: half a CPU and 256 MiB."""
LIMITS = {
    "user.slice/user-1000.slice": ("20000", "536870912"),
    f"{SCOPE}/weighbridge/0123456789ab/1-native-server": OWN,
    "system.slice/docker-1.scope": OWN,
    "user.slice/user-1000.slice/docker-2.scope": OWN,
    "weighbridge/0123456789ab/7": OWN,
}


@pytest.fixture(params=[1, 2])
def limited(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A hierarchy in which a user's slice has a limit, a site below it its own, and containers theirs."""
    for base in (tmp_path / "cpu", tmp_path / "memory") if request.param == 1 else (tmp_path,):
        for name in LIMITS:
            (base / name).mkdir(parents=True, exist_ok=True)
        for folder in [each for each in base.rglob("*") if each.is_dir()]:
            _write(folder, "-1", str(2**63 - 4096), request.param)
        for name, (quota, memory) in LIMITS.items():
            _write(base / name, quota, memory, request.param)
    if request.param == 2:
        (tmp_path / "cgroup.controllers").touch()
    return tmp_path


def _write(folder: Path, quota: str, memory: str, version: int) -> None:
    if version == 2:
        (folder / "cpu.max").write_text(f"{'max' if quota == '-1' else quota} 100000\n")
        (folder / "memory.max").write_text("max\n" if int(memory) > 2**62 else f"{memory}\n")
    else:
        (folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
        (folder / "cpu.cfs_period_us").write_text("100000\n")
        (folder / "memory.limit_in_bytes").write_text(f"{memory}\n")


@pytest.mark.parametrize(
    ("group", "outermost", "above"),
    [
        (f"{SCOPE}/weighbridge/0123456789ab/1-native-server", "user.slice", (0.2, 2**29)),
        ("user.slice/user-1000.slice/docker-2.scope", "user.slice", (0.2, 2**29)),
        ("system.slice/docker-1.scope", "system.slice", (None, None)),
        ("weighbridge/0123456789ab/7", "weighbridge", (None, None)),
        ("", "/", (None, None)),
    ],
)
def test_limits_above_a_site_are_told_without_its_own(limited: Path, group: str, outermost: str, above):
    version_2 = (limited / "cgroup.controllers").exists()
    read = reader(f"0::/{group}\n" if version_2 else f"4:memory:/{group}\n8:cpu,cpuacct:/{group}\n")
    assert outermost_group(read, 4711, limited) == outermost
    assert limits_above(read, 4711, limited) == above


def test_limits_in_force_are_the_least_of_a_site_and_those_above(limited: Path):
    version_2, group = (limited / "cgroup.controllers").exists(), f"{SCOPE}/weighbridge/0123456789ab/1-native-server"
    read = reader(f"0::/{group}\n" if version_2 else f"4:memory:/{group}\n8:cpu,cpuacct:/{group}\n")
    limits = limits_in_force(read, 4711, limited)
    assert (limits.cpus, limits.period_s, limits.memory) == (0.2, 0.1, 2**28)
    assert (limits.cpu_words, limits.memory_words) == ("0.2 CPU, in each 100 ms", "256 MiB")
    assert (GroupLimits().cpu_words, GroupLimits().memory_words) == ("none", "none")


@pytest.mark.parametrize("number", [1, 2])
def test_with_what_a_site_competes_is_a_fact_of_it(monkeypatch: pytest.MonkeyPatch, number: int):
    def read(path: str) -> bytes:
        if not path.startswith("/proc/"):
            raise FileNotFoundError(path)
        group = "system.slice/docker-1.scope"
        return (f"0::/{group}\n" if number == 2 else f"4:memory:/{group}\n8:cpu,pids:/{group}\n").encode()

    monkeypatch.setattr(cgroup_files, "version", lambda *_: number)
    facts = group_facts(SimpleNamespace(read=read), 4711)  # type: ignore[arg-type]
    unlimited = {LIMITS_ABOVE: "no limit", CPU_LIMIT: "none", MEMORY_LIMIT: "none"}
    assert facts == {PROCESSES: "no limit", OUTERMOST_GROUP: "system.slice", **unlimited}


def test_of_a_process_that_has_ended_nothing_is_told(limited: Path):
    with pytest.raises(OSError):
        limits_above(lambda path: Path("/nonexistent").read_bytes(), 4711, limited)
