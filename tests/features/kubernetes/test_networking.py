"""Which network the pods of a node have, by what may be seen of it."""

import pytest

from weighbridge.features.kubernetes.networking import cni, proxy_mode
from weighbridge.linux.network import default_route_in, interfaces_in


@pytest.mark.parametrize(
    ("images", "annotations", "interfaces", "expected"),
    [
        (["quay.io/cilium/cilium:v1.15.1@sha256:1", "app:1"], {}, ["cni0"], "cilium v1.15.1"),
        (
            ["docker.io/calico/node:v3.27.0", "docker.io/flannel/flannel:v0.24"],
            {},
            [],
            "calico v3.27.0, flannel v0.24",
        ),
        (["example.org/amazon-k8s-cni@sha256:1"], {}, [], "amazon-vpc-cni"),
        ([], {"projectcalico.org/IPv4Address": "1", "flannel.alpha.coreos.com/x": "1"}, [], "calico, flannel"),
        ([], {}, ["lo", "eth0", "cali123", "cali456"], "calico"),
        (["app:1"], {"node.alpha.kubernetes.io/ttl": "0"}, ["lo", "eth0", "cni0", "veth1"], "bridge"),
        ([], {}, ["lo", "eth0"], ""),
    ],
)
def test_the_plug_in_is_what_is_nearest_to_it(
    images: list[str], annotations: dict[str, str], interfaces: list[str], expected: str
):
    assert cni(images, annotations, interfaces) == expected


def test_kube_proxy_says_its_mode():
    assert proxy_mode(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nnftables\n", ()) == "nftables"
    assert proxy_mode(b"HTTP/1.0 404 Not Found\r\n\r\niptables", ()) == ""
    assert proxy_mode(b"HTTP/1.0 200 OK\r\n\r\n<html>", ["kube-ipvs0"]) == "ipvs"
    assert proxy_mode(b"", ["lo"]) == ""


def test_interfaces_and_the_default_route_are_read_of_texts():
    table = "Iface Destination Gateway Flags RefCnt Use Metric Mask\ncni0 0001F40A 0 1 0 0 0 00FFFFFF 0 0 0\n"
    assert default_route_in(table) is None
    assert default_route_in(table + "eth0 00000000 0100000A 3 0 0 0 00000000 0 0 0\n") == "eth0"
    counters = "Inter-|   Receive\n face |bytes\n    lo: 1 2\n  eth0:3 4\n"
    assert interfaces_in(counters) == ["lo", "eth0"]
