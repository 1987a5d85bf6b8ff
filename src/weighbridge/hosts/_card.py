"""The link of a network card: its rate, and what it has carried, counted on the wire."""

from collections.abc import Callable, Mapping

from weighbridge.linux.tc import AROUND
from weighbridge.model.host import Link

_WHOLE = 1514
"""Bytes of a whole frame. A card that splits large packets itself may count those: there were more frames."""


def card(read: Callable[[str], bytes], where: str, interface: str) -> Link | None:
    """The link of a network card whose driver tells its rate; ``read`` gives the host's files. Else None."""
    folder = f"/sys/class/net/{interface}"
    try:
        read(f"{folder}/device/uevent")  # only hardware has it: a veth says 10 Gbit/s of itself
        rate = int(read(f"{folder}/speed")) * 1e6
    except (OSError, ValueError):
        return None

    def carried() -> Mapping[str, float]:
        found = {}
        for way, name in (("out", "tx"), ("in", "rx")):
            try:
                count, packets = (int(read(f"{folder}/statistics/{name}_{what}")) for what in ("bytes", "packets"))
            except (OSError, ValueError):
                continue
            found[way] = 8.0 * (count + AROUND * max(packets, count / _WHOLE))
        return found

    return Link(where, rate, carried) if interface and rate > 0 else None
