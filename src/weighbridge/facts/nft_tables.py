"""Prints the nftables tables in this network namespace, as reported by the kernel (nfnetlink).

This program for the Python of any host replaces nft(8) if that is not installed. It shows whether a packet filter has
rules that iptables-save(8) does not show. Its exit code is 1 if this user has no permission.
"""

import errno
import os
import socket
import struct
import sys
from pathlib import Path

_NETFILTER, _NFTABLES, _GET_TABLE = 12, 10, 1
_ROOT_DUMP = 0x301
"""NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH (netlink(7))."""
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
_NAME = 1
"""The attribute NFTA_TABLE_NAME (linux/netfilter/nf_tables.h)."""
_FAMILIES = {1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}


def tables_in(data: bytes) -> tuple[list[str], bool]:
    """Return the tables in netlink messages, as "ip filter", and whether they were the last. Raises OSError."""
    tables: list[str] = []
    while len(data) >= _HEADER.size:
        size, kind, _, _, _ = _HEADER.unpack_from(data)
        if kind == _DONE:
            return tables, True
        body = data[_HEADER.size : size]
        if kind == _ERROR:
            number = -struct.unpack_from("=i", body)[0]
            if number in (errno.EINVAL, errno.EOPNOTSUPP):  # this kernel has no nftables
                return tables, True
            raise OSError(number, "nftables")
        family, attributes = _FAMILIES.get(body[0], "?"), body[4:]
        while len(attributes) >= 4:
            length, attribute = struct.unpack_from("=HH", attributes)
            if attribute == _NAME:
                tables.append(family + " " + attributes[4:length].split(b"\0")[0].decode(errors="replace"))
            attributes = attributes[max(4, (length + 3) & ~3) :]
        data = data[max(_HEADER.size, (size + 3) & ~3) :]
    return tables, False


def is_loaded(modules: str = "/proc/modules", builtin: str = "") -> bool:
    """Return whether the kernel can have tables: if it would have to load nf_tables first, it has none."""
    builtin = builtin or f"/lib/modules/{os.uname().release}/modules.builtin"
    try:
        return "nf_tables " in Path(modules).read_text() or "/nf_tables.ko" in Path(builtin).read_text()
    except OSError:  # a kernel without modules
        return True


def main() -> None:
    """Ask the kernel and print a line for each table."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER) as kernel:
        kernel.settimeout(5)
        family_of_all = struct.pack("=BBH", 0, 0, 0)
        kind = (_NFTABLES << 8) | _GET_TABLE
        kernel.send(_HEADER.pack(_HEADER.size + len(family_of_all), kind, _ROOT_DUMP, 1, 0) + family_of_all)
        last = False
        while not last:
            tables, last = tables_in(kernel.recv(1 << 16))
            sys.stdout.write("".join(table + "\n" for table in tables))


if __name__ == "__main__":
    try:
        if is_loaded():
            main()
    except OSError as error:
        sys.exit(error.errno != errno.EPROTONOSUPPORT)  # a kernel without nfnetlink has no nftables
