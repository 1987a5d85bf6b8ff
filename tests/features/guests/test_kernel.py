"""The kernel within a compressed image, the order of its modules, and the archive that they are brought in."""

import gzip
import lzma
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.errors import UserlandError
from weighbridge.features.guests.kernel import OtherCompression, keep, kept_in, order_of, uncompressed
from weighbridge.features.guests.ramdisk import archive, unsigned

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


def test_an_image_of_arm64_is_booted_as_it_is():
    arm64 = b"MZ@\xfaFcN\x14" + bytes(48) + b"ARMd" + b"rest"  # linux-image-6.1.0-56-cloud-arm64
    assert uncompressed(arm64) == uncompressed(gzip.compress(arm64)) == arm64
    with pytest.raises(OtherCompression):
        uncompressed(b"MZ\0\0zimg" + bytes(100))


@pytest.mark.parametrize(
    "wrong",
    [
        b"", b"MZ" * 1000, b"\x1f\x8b no archive", gzip.compress(b"no kernel", mtime=0), image(b"no archive"),
        image(lzma.compress(b"no kernel")), image(lzma.compress(KERNEL)[:99]),
    ],
)  # fmt: skip
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


def test_modules_that_are_compressed_are_found_too():
    compressed = DEPENDENCIES.replace(".ko", ".ko.xz")
    assert order_of(compressed, "xen-netfront") == ("kernel/drivers/net/xen-netfront.ko.xz",)
    assert len(order_of(compressed, "virtio_blk")) == 3


def test_a_kernel_that_stays_packed_is_kept_with_its_modules(tmp_path: Path):
    root, kept = tmp_path / "root", tmp_path / "kept"
    tree = root / "lib/modules/7.2"
    (tree / "kernel/fs").mkdir(parents=True)
    (root / "boot").mkdir()
    kept.mkdir()
    (root / "boot/vmlinuz-7.2").write_bytes(b"packed by zstd")
    (tree / "kernel/fs/ext4.ko.xz").write_bytes(lzma.compress(KERNEL))
    (tree / "modules.dep").write_text("kernel/fs/ext4.ko.xz:\n")
    (tree / "modules.builtin").write_text("kernel/drivers/virtio/virtio_pci.ko\n")
    keep(kept, root, "7.2", packed=True)
    made = kept_in(kept)
    assert made is not None
    assert made.image.read_bytes() == made.compressed.read_bytes() == b"packed by zstd"
    (module,) = made.modules["ext4"]
    assert (module.name, module.read_bytes()) == ("ext4.ko", KERNEL)
    assert made.modules["virtio_blk"] == made.modules["virtio_pci"] == ()
    assert "virtio_blk" in made.lacking and not {"ext4", "virtio_pci"} & {*made.lacking}


def test_a_kernel_that_cannot_be_used_is_told(tmp_path: Path):
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/vmlinuz-7.2").write_bytes(b"packed by zstd")
    with raises_sentence(UserlandError):
        keep(tmp_path, tmp_path, "7.2")


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
