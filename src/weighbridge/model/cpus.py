"""Lists of CPUs as the kernel and study files write them."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

MOST_CPUS = 8192
"""What a Linux kernel is built for at most."""
_RANGE = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


def cpus_in(listed: str) -> list[int]:
    """The CPUs in a list: "0-1,3" is [0, 1, 3]. Raises ValueError for what is no list, or names too many CPUs."""
    found = [_RANGE.fullmatch(part) for part in listed.split(",")]
    ends = [(int(each[1]), int(each[2] or each[1])) for each in found if each]
    counts = [last - first + 1 for first, last in ends]
    # summed before any range is expanded: a short text can name more numbers than fit into memory
    if len(ends) < len(found) or min(counts) < 1 or sum(counts) > MOST_CPUS or max(ends)[1] >= MOST_CPUS:
        raise ValueError(f"'{listed:.60}' is not a list of CPUs: write it like 0 or 0-1 or 0,2")
    return [cpu for first, last in ends for cpu in range(first, last + 1)]


def _list_of_cpus(listed: str) -> str:
    cpus_in(listed)
    return listed


CpuList = Annotated[
    str,
    AfterValidator(_list_of_cpus),
    Field(examples=["0", "0-1"], json_schema_extra={"pattern": r"^\d{1,4}([,-]\d{1,4})*$"}),
]
"""The text of such a list."""
