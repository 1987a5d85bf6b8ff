"""Builds and boots virtual machines: the kernel, the boot medium, the disk with the root filesystem, and QEMU.

The environments and hosts that are virtual machines share it.
"""
