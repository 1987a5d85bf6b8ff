"""A plug-in of pytest with the fixture ``weigh``, which asserts a budget for the cost of a command or a function.

Every pytest of a user loads this module, so it imports the rest of Weighbridge only when a test asks for the fixture.
"""

import os
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from weighbridge.api.run import Run

METRIC = "call=regex:seconds_per_call=([0-9.e+-]+),lower,s"
"""The metric of a function, as `weighbridge.api.call` prints it."""
Measured = Sequence[str] | Callable[[], object]
"""A command as a list of words, or a function of a module without parameters."""


@pytest.fixture(name="weigh", scope="session")
def weigh_fixture() -> "Callable[..., Run]":
    """Measure a command or a function, and assert a budget for its cost: ``weigh(["./prog"], budget="5%")``."""
    return weigh_within


def weigh_within(
    measured: Measured,
    *,
    budget: str,
    environment: str | None = None,
    against: Measured | None = None,
    baseline: str | os.PathLike[str] | None = None,
    rounds: int | None = None,
    undecided: Literal["fail", "skip"] = "fail",
    options: Sequence[str] = (),
) -> "Run":
    """Measure, check the cost of the primary metric against a budget such as ``"5%"``, and return the run.

    The cost is the cost of an ``environment`` against this machine, or of a version ``against`` an older one. With a
    ``baseline``, which is an earlier run directory of the same study, the budget is for the increase of this cost
    since then. ``rounds`` and ``options`` have the same meaning as for `weighbridge.weigh`.

    The test passes only if the whole interval is within the budget, and fails if the whole interval is above it. If
    the measurement cannot decide, or if the control failed, the test fails too, or is skipped with
    ``undecided="skip"``. Raises WeighbridgeError if nothing can be measured.
    """
    from weighbridge import weigh
    from weighbridge.api.weighing import run_command
    from weighbridge.errors import LimitExceeded, LimitUndecided, TrialsFailed, Untrusted

    __tracebackhide__ = True
    if callable(measured):
        options = ["--metric", METRIC, *options]
    run = weigh(
        _command(measured), environments=[environment] if environment else [], rounds=rounds,
        against=None if against is None else _command(against), options=options,
    )  # fmt: skip
    judged = {f"*.{each.workload}.{each.metric}<={budget}" for each in run.costs.where(primary=True, control=False)}
    limits = [word for each in sorted(judged) for word in ("--budget", each)]
    if baseline is not None:
        limits = ["--against", str(Path(baseline)), "--margin", budget]
    try:
        run_command("gate", str(run.path), *limits)
    except LimitExceeded as error:
        pytest.fail(f"{error} The run: {run.path}", pytrace=False)
    except (LimitUndecided, TrialsFailed, Untrusted) as error:
        if undecided == "skip":
            pytest.skip(f"{error} The run: {run.path}")
        pytest.fail(f"{error} The run: {run.path}", pytrace=False)
    return run


def _command(measured: Measured) -> list[str]:
    """Return a command, or the command that times a function. Raises WeighbridgeError for other callables."""
    if not callable(measured):
        return [*measured]
    from weighbridge import WeighbridgeError

    module, name = getattr(measured, "__module__", None), getattr(measured, "__qualname__", "")
    try:
        is_found = module != "__main__" and attrgetter(name)(sys.modules[str(module)]) is measured
    except (AttributeError, KeyError):
        is_found = False
    if not is_found:
        raise WeighbridgeError(
            f"{measured!r} cannot be imported by its name: weigh measures functions of a module, not lambdas or "
            "functions in functions"
        )
    path = os.pathsep.join(str(Path(each).absolute()) for each in sys.path)
    return [sys.executable, "-P", str(Path(__file__).with_name("call.py")), str(module), name, path]
