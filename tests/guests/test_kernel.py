"""The kernel within a compressed image, the order of its modules, and the archive that they are brought in."""

import gzip
import lzma
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.guests.kernel import order_of, uncompressed
from weighbridge.guests.ramdisk import archive, unsigned

KERNEL = b"\x7fELF" + bytes(range(256)) * 40
DEPENDENCIES = """\
kernel/drivers/virtio/virtio_ring.ko:
kernel/drivers/virtio/virtio.ko: kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/block/virtio_blk.ko: kernel/drivers/virtio/virtio.ko kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/net/xen-netfront.ko:
"""


def image(payload: bytes, sectors: int = 3) -> bytes:
    header = bytearray((sectors + 1) * 512)
    header[0x1F1] = sectors
    header[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", header, 0x248, 7, len(payload))
    return bytes(header) + bytes(7) + payload + b"what follows"


@pytest.mark.parametrize("compress", [lambda data: lzma.compress(data, check=lzma.CHECK_CRC32), gzip.compress])
def test_the_kernel_is_taken_from_where_the_header_says(compress):
    assert uncompressed(image(compress(KERNEL))) == KERNEL


@pytest.mark.parametrize(
    "wrong",
    [b"", b"MZ" * 1000, image(b"no archive"), image(lzma.compress(b"no kernel")), image(lzma.compress(KERNEL)[:99])],
)
def test_anything_else_is_refused(wrong: bytes):
    with pytest.raises(ValueError):
        uncompressed(wrong)


@given(st.binary(max_size=2000))
def test_no_bytes_are_a_fault(data: bytes):
    with pytest.raises(ValueError):
        uncompressed(data)


def test_modules_are_loaded_after_what_they_need():
    assert order_of(DEPENDENCIES, "virtio_blk") == (
        "kernel/drivers/virtio/virtio_ring.ko",
        "kernel/drivers/virtio/virtio.ko",
        "kernel/drivers/block/virtio_blk.ko",
    )
    assert order_of(DEPENDENCIES, "xen_netfront") == ("kernel/drivers/net/xen-netfront.ko",)
    assert order_of(DEPENDENCIES, "virtio_net") == ()
    assert order_of("", "virtio_net") == ()


def test_a_signature_is_taken_off_and_nothing_else():
    module = b"\x7fELF the module"
    signature = b"s" * 40
    trailer = bytes(8) + len(signature).to_bytes(4, "big") + b"~Module signature appended~\n"
    assert unsigned(module + signature + trailer) == module
    assert unsigned(module) == module


def test_an_archive_has_names_modes_and_contents():
    made = archive([("dev", 0o040755, b""), ("init", 0o100755, b"program"), ("lib/a.ko", 0o100644, b"12345")])
    entries = {}
    at = 0
    while True:
        assert made[at : at + 6] == b"070701"
        fields = [int(made[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        name_size, size = fields[11], fields[6]
        name = made[at + 110 : at + 110 + name_size - 1].decode()
        start = -(-(at + 110 + name_size) // 4) * 4
        if name == "TRAILER!!!":
            break
        entries[name] = (fields[1], made[start : start + size])
        at = -(-(start + size) // 4) * 4
    assert entries == {
        "dev": (0o040755, b""), "init": (0o100755, b"program"), "lib/a.ko": (0o100644, b"12345"),
    }  # fmt: skip
