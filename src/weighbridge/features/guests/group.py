"""The control group of a hypervisor's process, with all of its threads."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from weighbridge.errors import Unavailable
from weighbridge.model.host import Group
from weighbridge.model.site import SiteRequest


def hypervisor_group(stack: ExitStack, request: SiteRequest) -> tuple[Group | None, Mapping[str, str]]:
    """Make the hypervisor's control group; return it and its refused limits with the reasons. ``stack`` removes it.

    Memory is limited by the guest's RAM: a group limit would have to include the hypervisor itself.
    """
    try:
        group = request.host.group(request.name)
    except Unavailable as error:
        limit_values = {"cpus": request.limits.cpus, "pin": request.limits.cpuset}
        return None, {name: str(error) for name, value in limit_values.items() if value is not None}
    stack.callback(group.remove)
    stack.callback(group.kill)
    return group, group.limit(replace(request.limits, memory=None))
