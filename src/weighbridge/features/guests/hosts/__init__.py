"""The kind of host that is a QEMU guest."""
