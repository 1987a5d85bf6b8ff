"""Guests: a kernel, what is loaded before its disk, the disk made of a userland, and the machine that runs them."""
