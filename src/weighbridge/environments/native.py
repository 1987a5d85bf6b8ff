"""Native: the userland's programs on the host itself, in a chroot, under the same limits as everything else."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from weighbridge.hosts.chroot import chroot_site
from weighbridge.model.plugin import Environment, Readiness
from weighbridge.model.quantity import Share
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.study import Options
from weighbridge.process import output


class NativeOptions(Options):
    """``cpu_share`` gives the site less of the study's CPU limit: a known cost, for calibration."""

    cpu_share: Annotated[Share, Field(gt=0, le=1, description="Of the study's cpus limit")] | None = None


class Native(Environment):
    """The baseline of most studies."""

    kind = "native"
    summary = "the host itself: a chroot into the userland, limits by control group"
    options = NativeOptions

    def readiness(self) -> Readiness:
        """Ready where mount namespaces may be made: always for root, else where user namespaces are allowed."""
        if output(("unshare", "--map-root-user", "--mount", "true")) is None:
            return Readiness(False, "this user may not make user namespaces", "run as root")
        return Readiness(True)

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """A chroot with its own control group."""
        if options.cpu_share is not None and request.limits.cpus is not None:
            limits = replace(request.limits, cpus=request.limits.cpus * options.cpu_share)
            request = replace(request, limits=limits)
        with chroot_site(request) as site:
            yield site


PLUGIN = Native()
