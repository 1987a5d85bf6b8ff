"""Temporarily gives up root's rights over files, so that root can do no harm in a folder of another user."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_NO_USER = -1
"""With this argument, setfsuid(2) changes nothing and returns the current id."""


@contextmanager
def rights_of_owner(status: os.stat_result) -> Iterator[None]:
    """In this context and thread, give root only the rights over files that a folder's owner has.

    ``status`` is the folder's. Nothing changes for other users, or in a folder that root owns. Root keeps its
    supplementary groups. Nothing changes either if the kernel does not let this process have the owner's rights: root
    without CAP_SETUID, or an owner without an id in this user namespace, over whose files root has no rights anyway.
    """
    if os.geteuid() != 0 or status.st_uid == 0:
        yield
        return
    import ctypes  # it is slow to import, and few commands need it

    libc = ctypes.CDLL(None)
    before = libc.setfsgid(status.st_gid)
    try:
        libc.setfsuid(status.st_uid)  # the kernel also removes CAP_DAC_OVERRIDE and the like
        if libc.setfsuid(_NO_USER) != status.st_uid:
            libc.setfsgid(before)
        yield
    finally:
        libc.setfsuid(os.geteuid())
        libc.setfsgid(before)
