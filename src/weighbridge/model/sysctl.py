"""Kernel settings that a site, or a supporting service, can set for itself (sysctl(8))."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

SYSCTL_PATTERN = r"^(net\.[a-zA-Z0-9_.-]{1,200}|fs\.mqueue\.[a-z_]{1,40}|kernel\.(msg|shm|sem)[a-z_]{0,40})$"
"""The kernel settings that a site can set for itself: of its network, and of System V and POSIX IPC."""


def _sysctl(name: str) -> str:
    if not re.match(SYSCTL_PATTERN, name):
        ours = "net.*, kernel.msg*, kernel.sem, kernel.shm* and fs.mqueue.*"
        raise ValueError(f"a site cannot set it for itself: only {ours}")
    return name


def _sysctl_value(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).isprintable() or value == "":
        raise ValueError("write a number or text")
    return str(value)


Sysctl = Annotated[str, AfterValidator(_sysctl)]
SysctlValue = Annotated[
    str, BeforeValidator(_sysctl_value), WithJsonSchema({"type": ["integer", "string"], "minLength": 1})
]
"""A number or text, as the kernel reads it."""
