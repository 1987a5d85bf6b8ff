"""Optional environments that cannot be opened here: left out before the first trial, and the run keeps why."""

from collections.abc import Callable, Mapping, Sequence

from weighbridge.errors import Unavailable
from weighbridge.model.decisions import LeftOut, left_out_text
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Study
from weighbridge.store.reader import LEFT_OUT
from weighbridge.store.run import RunStore

ReadinessOf = Callable[[Study], Mapping[str, Readiness]]
"""By environment whether it can be opened here: `weighbridge.runner.run.readiness_of`."""


def not_ready(study: Study, readiness: ReadinessOf) -> tuple[LeftOut, ...]:
    """The optional environments that are not ready here; only these are looked at."""
    optional = study.without([arm.name for arm in study.arms if not arm.optional])
    found = readiness(optional) if optional.arms else {}
    return tuple(
        LeftOut(environment=arm.name, kind=arm.kind, why=found[arm.name].detail, remedy=found[arm.name].remedy)
        for arm in optional.arms
        if not found[arm.name].ready
    )


def measured(study: Study, left_out: Sequence[LeftOut]) -> Study:
    """The study without what is left out. Raises Unavailable where nothing is left to compare with the baseline."""
    if why := nothing_left(study, left_out):
        raise Unavailable(why)
    return study.without([each.environment for each in left_out])


def nothing_left(study: Study, left_out: Sequence[LeftOut]) -> str:
    """Why the study cannot be run without what is left out; "" where it can."""
    rest = study.without([each.environment for each in left_out])
    if not left_out or not all(arm.aa_of or arm.name == study.file.baseline for arm in rest.arms):
        return ""
    why = "; ".join(left_out_line(each) for each in left_out)
    return f"nothing is left to compare with {study.file.baseline}: {why}"


def leave_out(study: Study, store: RunStore, readiness: ReadinessOf, say: Callable[[str], None]) -> Study:
    """Return the study as this run measures it, and keep and tell what is left out.

    A run with a trial keeps what it began with: then nothing is looked at again.
    """
    begun = bool(store.finished())
    left_out = store.left_out() if begun else not_ready(study, readiness)
    rest = measured(study, left_out)
    if not begun:
        store.set_info(LEFT_OUT, left_out_text(left_out))
    for each in left_out:
        say(left_out_line(each))
    return rest


def left_out_line(left_out: LeftOut) -> str:
    """One line for the progress: ``podman is left out: podman is not installed; apt-get install podman``."""
    return f"{left_out.environment} is left out: {left_out.reason}"
