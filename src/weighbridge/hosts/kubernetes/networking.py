"""Which network a node's pods have, by what the user may see of it: the CNI plug-in, and kube-proxy's mode. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

PROXY_MODE = ("127.0.0.1", "10249", "/proxyMode")
"""Where kube-proxy of a node says its mode, unless it is told otherwise."""
PROXY_MODES = ("iptables", "ipvs", "nftables")
_IMAGES = {
    "calico/node": "calico", "cilium/cilium": "cilium", "flannel/flannel": "flannel", "coreos/flannel": "flannel",
    "kindnetd": "kindnet", "weave-kube": "weave", "amazon-k8s-cni": "amazon-vpc-cni", "antrea-agent": "antrea",
    "antrea/antrea": "antrea", "cloudnativelabs/kube-router": "kube-router", "ovn-kube": "ovn-kubernetes",
    "azure-cni": "azure-cni", "azure-cns": "azure-cni", "multus-cni": "multus",
}  # fmt: skip
"""Parts of the names of images of plug-ins, as they are on every node."""
_ANNOTATIONS = {
    "projectcalico.org/": "calico", "network.cilium.io/": "cilium", "io.cilium.": "cilium",
    "flannel.alpha.coreos.com/": "flannel", "k8s.ovn.org/": "ovn-kubernetes", "kube-router.io/": "kube-router",
    "node.antrea.io/": "antrea",
}  # fmt: skip
"""How annotations of a node begin."""
_INTERFACES = {
    "cilium_": "cilium", "cali": "calico", "vxlan.calico": "calico", "flannel": "flannel", "weave": "weave",
    "antrea-": "antrea", "ovn-k8s-": "ovn-kubernetes", "kube-bridge": "kube-router", "azv": "azure-cni",
    "eni": "amazon-vpc-cni", "gke": "gke", "cni0": "bridge",
}  # fmt: skip
"""How interfaces in a node's network begin."""
_TAG = re.compile(r":(v?\d[\w.+-]*)$")


def cni(images: Iterable[str], annotations: Mapping[str, Any], interfaces: Iterable[str]) -> str:
    """Return the plug-ins, with their versions where their pods are seen; "" where none is known.

    ``images``: those of the node's pods that the user may see. What is nearer to a plug-in itself goes first.
    """
    by_image: dict[str, str] = {}
    for image in sorted(images):
        for part, name in _IMAGES.items():
            if part in image:
                tag = _TAG.search(image.partition("@")[0])
                by_image.setdefault(name, f"{name} {tag[1]}" if tag else name)
    by_annotation = _named(_ANNOTATIONS, annotations)
    return ", ".join([*by_image.values()] or by_annotation or _named(_INTERFACES, interfaces))


def _named(beginnings: Mapping[str, str], words: Iterable[str]) -> list[str]:
    names = {name for word in words for begins, name in beginnings.items() if word.startswith(begins)}
    return sorted(names)


def proxy_mode(answer: bytes, interfaces: Iterable[str]) -> str:
    """Return kube-proxy's mode by its HTTP answer, or by the interface that one of them makes; "" where unknown."""
    head, _, body = answer.decode(errors="replace").partition("\r\n\r\n")
    if " 200 " in head.partition("\r\n")[0] and body.strip() in PROXY_MODES:
        return body.strip()
    return "ipvs" if "kube-ipvs0" in interfaces else ""
