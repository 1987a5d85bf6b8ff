"""What this kernel can do for Docker's networks, found by trying it once in a namespace that is thrown away.

Who may make no such namespace cannot look, and the engine may well have the network.
"""

import functools
import os

from weighbridge.linux import user_namespaces
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


def not_looked() -> tuple[str, str] | None:
    """Return why this user cannot look what the kernel can do, and what opens that; None: it can."""
    return None if os.geteuid() == 0 else user_namespaces.refusal()


@functools.cache
def lacking(feature: str) -> str:
    """Why the kernel cannot do ``macvlan``, ``ipvlan``, ``overlay`` or ``encrypted``; empty where it can.

    And where this user may not look (`not_looked`).
    """
    script, what = _TRIES[feature]
    as_root = () if os.geteuid() == 0 else ("--map-root-user",)
    done = run(Command(("unshare", *as_root, "--net", "sh", "-c", script), 10))
    if done.returncode == 0 or not_looked() is not None:
        return ""
    return f"this kernel has no {what} ({done.last_words})"
