"""Hypervisors around hosts and sites: as data, and by whom they are given."""

from collections.abc import Mapping
from typing import Any

import pytest

from weighbridge.hosts.local import LocalHost
from weighbridge.launcher.site import LaunchedSite
from weighbridge.model.isolation import Layer, is_emulated
from weighbridge.model.kept_layers import layers_json, layers_of

from . import held

QEMU = Layer("QEMU, TCG", emulated=True)


class Anywhere(LaunchedSite):
    """As little of a site as there is."""

    def __init__(self, host: LocalHost) -> None:
        launcher: Any = type(
            "Launcher", (), dict.fromkeys(("open_files", "run", "start", "read", "put", "listening"))
        )
        super().__init__("1-one-server", host, launcher, ("127.0.0.1", "127.0.0.1"))

    def _pause(self) -> None: ...

    def _resume(self) -> None: ...

    def meters(self) -> Mapping[str, float]:
        return {}

    def scope(self) -> Mapping[str, str]:
        return {}

    def facts(self) -> Mapping[str, str]:
        return {}


def test_a_site_is_in_its_hosts_layers_and_may_add_its_own() -> None:
    host = LocalHost("0123456789ab")
    held.holds_as_layers(host.layers)
    assert host.layers == Anywhere(host).layers == ()
    host.layers = (QEMU,)
    site = Anywhere(host)
    assert site.layers == (QEMU,)
    site.layers = (*site.layers, Layer("Xen PVH"))
    held.holds_as_layers(site.layers)
    assert (host.layers, is_emulated(site.layers), is_emulated(site.layers[1:])) == ((QEMU,), True, False)


def test_layers_are_kept_as_json() -> None:
    kept = layers_json((QEMU, Layer("Xen PVH")))
    assert kept == '[{"name":"QEMU, TCG","emulated":true},{"name":"Xen PVH","emulated":false}]'
    assert layers_of(kept) == (QEMU, Layer("Xen PVH"))
    assert layers_of("[]") == ()


@pytest.mark.parametrize("damaged", ["", "{}", "[1]", '[{"name": 1}]', '[{"name":"x","emulated":"yes"}]', "[" * 9999])
def test_what_is_no_list_of_layers_is_no_list_of_layers(damaged: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        layers_of(damaged)
