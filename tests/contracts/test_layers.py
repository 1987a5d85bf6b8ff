"""Hypervisors around hosts and sites: as data, and by whom they are given."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from weighbridge.facts.site import layers_of_site
from weighbridge.hosts.local import LocalHost
from weighbridge.launcher.site import LaunchedSite
from weighbridge.model.facts import layers_json, layers_of
from weighbridge.model.isolation import Layer, SiteLayers
from weighbridge.model.names import RunId

from . import held

QEMU = Layer("QEMU, TCG", emulated=True)


class Anywhere(LaunchedSite):
    """As little of a site as there is."""

    def __init__(self, host: LocalHost) -> None:
        launcher: Any = type(
            "Launcher", (), dict.fromkeys(("name", "open_files", "run", "start", "put", "listening"))
        )
        launcher.read = lambda path: {"/proc/stat": b"cpu  10 0 5 90 0 0 1 4 0 0\n"}[path]
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
    host = LocalHost(RunId("0123456789ab"))
    held.holds_as_layers(f"host {host.name}", host.layers)
    assert host.layers == Anywhere(host).layers == ()
    host.layers = (QEMU,)
    site = Anywhere(host)
    assert site.layers == (QEMU,)
    site.layers = (*site.layers, Layer("Xen PVH"))
    held.holds_as_layers(f"site {site.name}", site.layers)
    assert host.layers == (QEMU,)


def test_a_site_beside_the_kernel_of_its_host_is_not_in_all_that_this_is_in() -> None:
    host = LocalHost(RunId("0123456789ab"))
    host.layers = (QEMU, Layer("Xen's first domain"))
    native, domain = Anywhere(host), Anywhere(host)
    domain.layers = (QEMU, Layer("Xen PVH"))
    assert layers_of_site(native) == SiteLayers("local", host.layers)
    assert layers_of_site(domain) == SiteLayers("local", (QEMU,), (Layer("Xen PVH"),))
    assert native.guest_meters() == {} != domain.guest_meters()


def test_only_a_kernel_of_its_own_has_a_view_of_its_own() -> None:
    site = Anywhere(LocalHost(RunId("0123456789ab")))
    assert site.guest_meters() == {}
    site.layers = (Layer("QEMU, KVM"),)
    assert site.guest_meters() == {"guest_cpu_s": 0.16, "guest_steal_s": 0.04}


def test_an_emulator_s_guest_is_told_of_no_steal() -> None:
    site = Anywhere(LocalHost(RunId("0123456789ab")))
    site.layers = (QEMU,)
    assert site.guest_meters() == {"guest_cpu_s": 0.16}
    site.layers = (QEMU, Layer("Xen PVH"))  # Xen's own steal, which it counts
    assert site.guest_meters() == {"guest_cpu_s": 0.16, "guest_steal_s": 0.04}


def test_the_memory_of_sites_is_their_machines() -> None:
    memory = Anywhere(LocalHost(RunId("0123456789ab"))).memory()
    assert 0 < memory["available"] < memory["total"]


def test_layers_are_kept_as_json() -> None:
    site = SiteLayers("lab", (QEMU,), (Layer("Xen PVH"),))
    kept = layers_json(site)
    assert kept == (
        '{"host":"lab","of_host":[{"name":"QEMU, TCG","emulated":true}],"own":[{"name":"Xen PVH","emulated":false}]}'
    )
    assert layers_of(kept) == site and site.layers == (QEMU, Layer("Xen PVH")) and site.emulated
    assert layers_of('{"host":"a"}') == SiteLayers("a") and not SiteLayers("a").emulated


@pytest.mark.parametrize(
    "damaged", ["", "{}", "[1]", '{"host": 1}', '{"host":"a","own":[{"name":"x","emulated":"yes"}]}', "[" * 9999]
)
def test_what_is_no_site_s_layers(damaged: str) -> None:
    with pytest.raises(ValidationError):
        layers_of(damaged)
