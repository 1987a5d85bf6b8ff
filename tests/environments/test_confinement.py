"""What each kind of environment confines: asked for by its kind and options, or as natively."""

import pytest

from weighbridge import registry
from weighbridge.model.facts import CONFINEMENT


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_a_container_has_a_filter_of_system_calls_unless_it_is_unconfined(kind: str):
    plugin = registry.environments()[kind]
    assert plugin.confinement(plugin.options())["seccomp"] == "filter"
    unconfined = plugin.confinement(plugin.options.model_validate({"seccomp": "unconfined"}))
    assert "seccomp" not in unconfined and {"capabilities", "namespaces"} <= {*unconfined}
    assert "new privileges" not in unconfined, "no option of a study asks for it"


def test_native_sites_are_confined_as_whoever_measures():
    environments = registry.environments()
    native, netns = environments["native"], environments["netns"]
    assert native.confinement(native.options()) == {} and [*netns.confinement(netns.options())] == ["namespaces"]


@pytest.mark.parametrize("kind", sorted(registry.environments()))
def test_every_kind_tells_facts_that_sites_have(kind: str):
    plugin = registry.environments()[kind]
    options = plugin.options.model_validate({"preset": "landrun"} if kind == "wrapper" else {})
    assert {*plugin.confinement(options)} <= {*CONFINEMENT}
