"""The network of a node's pods, as far as the user can see it: the CNI plug-in, and kube-proxy's mode. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

PROXY_MODE = ("127.0.0.1", "10249", "/proxyMode")
"""The default address at which kube-proxy of a node reports its mode."""
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
"""The beginnings of a node's annotations."""
_INTERFACES = {
    "cilium_": "cilium", "cali": "calico", "vxlan.calico": "calico", "flannel": "flannel", "weave": "weave",
    "antrea-": "antrea", "ovn-k8s-": "ovn-kubernetes", "kube-bridge": "kube-router", "azv": "azure-cni",
    "eni": "amazon-vpc-cni", "gke": "gke", "cni0": "bridge",
}  # fmt: skip
"""The beginnings of interfaces in a node's network."""
_TAG = re.compile(r":(v?\d[\w.+-]*)$")


def cni(images: Iterable[str], annotations: Mapping[str, Any], interfaces: Iterable[str]) -> str:
    """Return the plug-ins, with their versions if their pods are visible; "" if unknown.

    ``images`` are those of the node's visible pods. The most direct evidence takes precedence.
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
    """Return kube-proxy's mode from its HTTP answer, or from the interface of ipvs; "" if unknown."""
    head, _, body = answer.decode(errors="replace").partition("\r\n\r\n")
    if " 200 " in head.partition("\r\n")[0] and body.strip() in PROXY_MODES:
        return body.strip()
    return "ipvs" if "kube-ipvs0" in interfaces else ""
