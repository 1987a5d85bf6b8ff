"""What this kernel can do for Docker's networks, found by trying it once in a namespace that is thrown away."""

import functools

from weighbridge.linux.process import run
from weighbridge.model.command import Command

_ON_PARENT = "ip link add wb0 type veth peer name wb1 && ip link add link wb0 name wb2 type"
_TRIES = {
    "macvlan": (f"{_ON_PARENT} macvlan mode bridge", "macvlan"),
    "ipvlan": (f"{_ON_PARENT} ipvlan mode l2", "ipvlan"),
    "overlay": ("ip link add wb0 type vxlan id 42 dstport 4789", "VXLAN"),
    "encrypted": (
        "ip xfrm state add src 127.0.0.1 dst 127.0.0.2 proto esp spi 0x1 mode transport"
        " aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f10111213 64",
        "IPsec ESP with AES-GCM",
    ),
}


@functools.cache
def lacking(feature: str) -> str:
    """Why the kernel cannot do ``macvlan``, ``ipvlan``, ``overlay`` or ``encrypted``; empty where it can."""
    script, what = _TRIES[feature]
    done = run(Command(("unshare", "--map-root-user", "--net", "sh", "-c", script), 10))
    return "" if done.returncode == 0 else f"this kernel has no {what} ({done.last_words})"
