"""The companions of a study, as a run has them."""

from weighbridge import registry
from weighbridge.engines.companions import start_companions
from weighbridge.engines.docker import engine_of
from weighbridge.model.host import Host, RunContext
from weighbridge.model.site import WAY_TO_COMPANIONS, Neighbourhood
from weighbridge.model.study import Study


def start(study: Study, run: RunContext, host: Host) -> Neighbourhood:
    """Start them in the engine of a host, and wait until they are ready. Raises Unavailable, EnvironmentLost."""
    return start_companions(run, engine_of(run, host), study.file.companions)


def way(study: Study, environment: str) -> dict[str, str]:
    """Return how the sites of an environment reach them, as a fact; empty where there are none."""
    arm = next((arm for arm in study.arms if arm.name == environment), None)
    if arm is None or not study.file.companions:
        return {}
    return {WAY_TO_COMPANIONS: registry.environments()[arm.kind].way_to_companions(arm.options)}
