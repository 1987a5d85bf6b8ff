"""Tests with real engines: each is marked ``real``, and skipped with the reason where it cannot be made."""

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.build_once import KINDS
from weighbridge.features.guests import kernel
from weighbridge.model.host import RunContext
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.model.workload import Workload
from weighbridge.report.charts.library import chart_library
from weighbridge.runner import clean
from weighbridge.runner import run_lock as state
from weighbridge.study.loader import load
from weighbridge.userland.build import cache_folder, ensure, key_of

from .apptainer import folder_of_programs
from .machine import Machine
from .weighing import NOT_IN_IMAGES, kinds_in_every_environment

HERE = Path(__file__).parent


def _missing() -> str:
    if os.geteuid() != 0:
        return "needs root"
    missing = [
        program
        for program in ("dockerd", "mmdebstrap", "iptables", "mvn", "javac", "go")
        if shutil.which(program) is None
    ]
    return f"needs {', '.join(missing)}" if missing else ""


SIDE_BY_SIDE = (
    "test_other_pythons", "test_kit", "test_guest_host", "test_guests", "test_ssh", "test_userland",
    "test_podman", "test_sites", "test_microbenchmarks", "test_launcher", "test_virtualbox", "test_gvisor",
    "test_xen", "test_uml", "test_microvm", "test_vsock", "test_kvm_guest",
    "test_browser", "test_clean_one_run", "test_engine_folder",
    "test_kit_shell", "test_kit_summary", "test_kit_of_run", "test_ci_gate", "test_power_cut", "test_nfs",
    "test_storage_workloads",
    "test_image_trees", "test_image_users", "test_arm64", "test_distributions", "test_injected_truth",
    "test_documentation", "test_latex", "test_registry",
)  # fmt: skip
"""Modules whose tests measure nothing and mind nobody else's sites, so that two of these modules run at a time.
`test_other_pythons`, which is in tests/pythons and marks itself, needs no userland while the others build theirs.

Those that take longest are first: none is to run alone at the end. Not those of their tests that compare the machine
before and after, or that measure milliseconds (``measures(alone=True)``).
"""

LONGEST = (
    "pods", "test_run", "test_wrapper", "test_system_containers", "test_tutorial", "test_pull_request",
    "test_secrets", "test_fleet", "test_hostile_runs", "test_networks", "test_unprivileged", "test_weigh",
    "test_apptainer", "test_faults_between_hosts", "test_life", "test_interruptions", "test_slurm",
)  # fmt: skip
"""The modules, and the folder, that come first of what is ``apart``, for the same reason."""

OF_THIS_MACHINE = (
    "test_engine_of_another_machine_is_refused",  # a process namespace is its other machine
    "test_root_of_a_user_namespace_has_its_data",  # podman unmounts what other mounts hide there
)
"""Tests that do not work on what only looks like a machine of its own (own_machine.sh)."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here; ``side_by_side`` (make real runs these first) is what `SIDE_BY_SIDE` says."""
    missing = _missing()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.real)
            measures = item.get_closest_marker("measures")
            alone = "machine" in getattr(item, "fixturenames", ()) or (measures and measures.kwargs.get("alone"))
            if item.path.stem in SIDE_BY_SIDE and not alone:
                item.add_marker(pytest.mark.side_by_side)
            elif not measures and getattr(item, "originalname", "") not in OF_THIS_MACHINE:
                item.add_marker(pytest.mark.apart)
            if missing:
                item.add_marker(pytest.mark.skip(reason=missing))
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    """Return the position of a test's module; one worker has all tests of pods."""
    order = (*SIDE_BY_SIDE, *LONGEST)
    name = "pods" if item.path.parent.name == "pods" else item.path.stem
    return order.index(name) if name in order else len(order)


@pytest.fixture(scope="session")
def userland() -> Userland:
    """The userland with the programs of every workload but Java's, which engines import fast; kept by the user."""
    return kept_userland(_light())


@pytest.fixture(scope="session")
def small_userland() -> Userland:
    """The one that studies without a database use: an engine imports it three times as fast."""
    return kept_userland(_small())


def kept_userland(workloads: Iterable[Workload]) -> Userland:
    """The userland with the programs of these workloads, kept by the user."""
    return ensure(_spec(workloads), Path.home() / ".cache/weighbridge", print)


def _kernels() -> Path:
    """Where guests' kernels are, kept by the user."""
    cache = Path.home() / ".cache/weighbridge"
    if kernel.cannot_build(cache) is None:
        kernel.ensure(cache, print)
    (cache / "kernels").mkdir(parents=True, exist_ok=True)
    return cache / "kernels"


def _light() -> list[Workload]:
    found = registry.workloads().values()
    return [each for each in found if not each.maven and each.kind not in NOT_IN_IMAGES]


def _small() -> list[Workload]:
    large = ("mariadb", "hpcc")
    return [each for each in _light() if not any(name in package for package in each.packages for name in large)]


def _spec(workloads: Iterable[Workload]) -> UserlandSpec:
    return UserlandSpec.union(workload.userland() for workload in workloads)


@pytest.fixture(scope="session", autouse=True)
def cache(userland: Userland, small_userland: Userland, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache in which every study finds a userland that is built already, the smallest of three that has enough."""
    folder: Path = tmp_path_factory.mktemp("cache")
    (folder / "userlands").mkdir()
    (folder / "kernels").symlink_to(_kernels())
    for kind in {*KINDS} - {"userlands", "kernels"}:
        kept = Path.home() / ".cache/weighbridge" / kind
        kept.mkdir(exist_ok=True)
        (folder / kind).symlink_to(kept)
    chart_library()  # keeps it in the user's cache
    copy_parts_of_pages(Path.home() / ".cache/weighbridge", folder)
    everything = [each for each in registry.workloads().values() if each.kind not in NOT_IN_IMAGES]
    with_java = kept_userland(everything)
    enough = {*_spec(_small()).packages}
    distinct = {key_of(spec): spec for spec in (each.userland() for each in everything)}
    few = [some for number in (1, 2, 3) for some in itertools.combinations(distinct.values(), number)]
    many = [
        [registry.workloads()[kind] for kind in kinds_in_every_environment(calls_back)]
        for calls_back in (False, True)
    ]
    many += [[registry.workloads()[cell.kind] for cell in load(name).cells] for name in ("noise", "first-look")]
    for spec in (*map(UserlandSpec.union, few), *map(_spec, (*many, _small(), _light(), everything))):
        link = folder / "userlands" / key_of(spec)
        smallest = small_userland if {*spec.packages} <= enough else userland
        if not link.exists():
            link.symlink_to((with_java if spec.maven else smallest).root.parent)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # also then what was opened is closed
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEIGHBRIDGE_CACHE", str(folder))
        yield folder


def copy_parts_of_pages(source: Path, target: Path) -> None:
    """Copy what takes seconds to make for the first page of a cache: a page reads nothing through a link."""
    for kind in ("charts", "templates"):
        if (source / kind).exists():
            shutil.copytree(source / kind, target / kind)


@pytest.fixture(scope="session")
def users_userland(small_userland: Userland) -> Iterator[Path]:
    """A copy of the small userland that every user can read."""
    folder = Path("/tmp") / f"weighbridge-test-userland-{os.getpid()}"
    folder.mkdir()
    parts = [small_userland.root.parent / name for name in ("about.json", "root", "root.tar")]
    subprocess.run(["cp", "-a", *parts, folder], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def apptainer() -> Iterator[str]:
    """Put an Apptainer on PATH. The value says why there is none; "" where there is."""
    folder, lacking = folder_of_programs()
    with pytest.MonkeyPatch.context() as patch:
        if folder:
            patch.setenv("PATH", folder, prepend=os.pathsep)
        yield lacking


@pytest.fixture
def machine(userland: Userland) -> Iterator[Machine]:
    """The machine as it was before the test; afterwards it must be the same."""
    watched = Machine.as_it_is()
    yield watched
    watched.must_be_unchanged()


@contextmanager
def open_run(run_id: str) -> Iterator[RunContext]:
    """What sites are opened in, and everything of it closed and swept at the end."""
    with state.claim(run_id, cache_folder()) as folder:
        try:
            with ExitStack() as stack:
                yield RunContext(run_id, folder, cache_folder(), stack)
        finally:
            clean.sweep(run_id)
            state.forget(run_id)
