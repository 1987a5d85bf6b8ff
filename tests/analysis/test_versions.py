"""Which environments of a run are a base and its head."""

import pytest

from weighbridge.model.stored_study import pairs_of_versions

BOTH = {"head": "base"}


@pytest.mark.parametrize(
    ("study", "environments", "pairs"),
    [
        ("weigh-prog", ("base", "head"), BOTH),
        ("weigh-prog", ("base", "head", "base-docker", "head-docker"), {**BOTH, "head-docker": "base-docker"}),
        ("weigh-prog", ("base", "head", "base-docker"), {}),
        ("weigh-prog", ("base", "head", "docker"), {}),
        ("weigh-prog", ("native", "head"), {}),
        ("weigh-prog", ("base-docker", "head-docker"), {}),
        ("my-study", ("base", "head"), {}),
        ("weigh", (), {}),
    ],
)
def test_only_complete_pairs_of_weigh_are_versions(study, environments, pairs):
    assert pairs_of_versions(study, environments) == pairs
