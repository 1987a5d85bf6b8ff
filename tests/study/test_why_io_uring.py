"""The bundled study of the fallback from io_uring: which environments need it, and which refuse it."""

import pytest

from weighbridge import registry
from weighbridge.study.profiles import load


@pytest.mark.parametrize("profile", [None, "quick"])
def test_only_environments_that_fall_back_can_refuse_io_uring(profile: str | None):
    study = load("why-io-uring", profile)
    needing = {
        arm.name
        for arm in study.arms
        for cell in study.cells
        if registry.workloads()[cell.kind].needs_io_uring(study.options(arm, cell))
    }
    refusing = {arm.name for arm in study.arms if getattr(arm.options, "seccomp", "") == "no-io-uring"}
    optional = {arm.name for arm in study.arms if arm.optional}
    assert needing == {"native", "native-again", "docker", "docker-unconfined"}
    assert refusing == {"docker-fallback"}
    assert optional == {"docker"}, "an engine's own filter can refuse io_uring"
