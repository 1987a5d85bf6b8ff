"""The control group of a hypervisor's process, with every thread of it."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from weighbridge.errors import Unavailable
from weighbridge.model.host import Group
from weighbridge.model.site import SiteRequest


def hypervisor_group(stack: ExitStack, request: SiteRequest) -> tuple[Group | None, Mapping[str, str]]:
    """Make the hypervisor's control group; return it and its refused limits, each with why. ``stack`` removes it.

    Memory is the guest's own RAM: within a limit of the group the hypervisor itself would have to fit, too.
    """
    try:
        group = request.host.group(request.name)
    except Unavailable as error:
        limit_values = {"cpus": request.limits.cpus, "pin": request.limits.cpuset}
        return None, {what: str(error) for what, value in limit_values.items() if value is not None}
    stack.callback(group.remove)
    stack.callback(group.kill)
    return group, group.limit(replace(request.limits, memory=None))
