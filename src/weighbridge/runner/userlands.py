"""The userlands of a study: what each must hold, whether they can be had, and where they are."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Study
from weighbridge.model.userland import Userlands, UserlandSpec, own_userland_scope
from weighbridge.runner.preflight import userland_problem
from weighbridge.userland.build import ensure


def userland_of(study: Study) -> UserlandSpec:
    """Return what a userland must hold for the study's workloads."""
    return UserlandSpec.union(registry.workloads()[cell.kind].userland(cell.options) for cell in study.cells)


def userland_problems(study: Study) -> Iterator[Readiness]:
    """Yield why a userland of the study is neither there nor can be built by this user."""
    for key, source in study.sources.items():
        if (problem := userland_problem(userland_of(study), source)) is not None:
            told = "" if key == "userland" else f"{key}: "
            yield Readiness(False, told + problem.detail, problem.remedy)


def require_userlands(study: Study) -> None:
    """Raise Unavailable where one is not there and cannot be built by this user."""
    for problem in userland_problems(study):
        raise Unavailable(f"{problem.detail}: {problem.remedy}")


def ensure_userlands(study: Study, cache: Path, say: Callable[[str], None]) -> Userlands:
    """Return the study's userlands, built if need be. Raises as `weighbridge.userland.build.ensure`."""
    spec, clients = userland_of(study), study.file.client_userland
    usual = ensure(spec, cache, say, study.file.userland)
    return Userlands(
        usual,
        None if clients is None else ensure(spec, cache, say, clients),
        {arm.name: ensure(spec, cache, say, arm.userland) for arm in study.arms if arm.userland is not None},
    )


def userland_facts(study: Study, userlands: Userlands) -> dict[str, Mapping[str, str]]:
    """Return the digests and the versions of packages, by the scope in which a run keeps them."""
    found: dict[str, Mapping[str, str]] = {}
    own = {own_userland_scope(arm.name): userlands.own.get(arm.name) for arm in study.arms if arm.aa_of is None}
    for scope, userland in {"userland": userlands.usual, "client userland": userlands.clients, **own}.items():
        if userland is not None:
            found |= {scope: {"digest": userland.digest}, f"{scope} packages": userland.versions}
    return found
