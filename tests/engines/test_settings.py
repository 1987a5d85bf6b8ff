"""What an engine is started with, and how the kernel is asked what it can do."""

import pytest

from weighbridge.engines import kernel_support
from weighbridge.engines.settings import USUAL, Settings
from weighbridge.model.command import Command, Completed


@pytest.mark.parametrize(
    ("settings", "arguments", "purpose"),
    [
        (USUAL, (), ""),
        (Settings(userland_proxy=False), ("--userland-proxy=false",), "noproxy"),
        (Settings(nat=False), ("--iptables=false",), "nonat"),
        (Settings(False, nat=False), ("--userland-proxy=false", "--iptables=false"), "noproxy-nonat"),
    ],
)
def test_settings(settings: Settings, arguments: tuple[str, ...], purpose: str):
    assert (settings.arguments, settings.purpose) == (arguments, purpose)


@pytest.mark.parametrize("feature", ["macvlan", "ipvlan", "overlay", "encrypted"])
@pytest.mark.parametrize("able", [True, False])
def test_the_kernel_is_asked_in_a_namespace_that_is_thrown_away(
    monkeypatch: pytest.MonkeyPatch, feature: str, able: bool
):
    asked: list[tuple[str, ...]] = []

    def answer(command: Command) -> Completed:
        asked.append(command.argv)
        return Completed(command.argv, 0 if able else 2, b"", b"" if able else b"Error: Unknown device type.\n", 0.01)

    monkeypatch.setattr(kernel_support, "run", answer)
    kernel_support.lacking.cache_clear()
    try:
        why = kernel_support.lacking(feature)
        assert kernel_support.lacking(feature) == why and len(asked) == 1, "once"
    finally:
        kernel_support.lacking.cache_clear()
    assert asked[0][:5] == ("unshare", "--map-root-user", "--net", "sh", "-c")
    wanted = {"macvlan": "macvlan", "ipvlan": "ipvlan", "overlay": "vxlan", "encrypted": "xfrm"}[feature]
    assert wanted in asked[0][5]
    assert (
        why == "" if able else why.startswith("this kernel has no ") and why.endswith("(Error: Unknown device type.)")
    )
