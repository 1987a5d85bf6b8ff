"""Keys of facts that every site has, and that environments are compared by."""

KERNEL = "version: kernel"
"""Release of the kernel that a site's programs call: a guest's own, gVisor's, else the host's."""
PROCESSES = "processes of a site"
"""How many processes there may be in it, by its control group and those above."""
OPEN_FILES = "open files of a process"
"""How many files a process of the site may have open."""
UNPRIVILEGED = "unprivileged"
IN_NAMESPACE = "unprivileged in a user namespace"
"""Whom programs run as that are not root's.

There files of other users and groups are nobody's, so that a write to one may fail that a container allows.
"""
