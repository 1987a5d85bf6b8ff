"""A sample: what another program starts, here ``unshare``, with a host name of its own."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

from weighbridge.errors import Unavailable
from weighbridge.launcher import build
from weighbridge.launcher.launch import Launcher
from weighbridge.launcher.site import GroupedSite
from weighbridge.launcher.within import within
from weighbridge.linux.process import environment_of
from weighbridge.model.command import Command
from weighbridge.model.environment import Environment, Needs
from weighbridge.model.host import Group
from weighbridge.model.options import Options
from weighbridge.model.site import Site, SiteRequest


class UtsOptions(Options):
    """It has none. With ``mounts`` it would derive from ``EnvironmentOptions``, which has the option ``storage``."""


class UtsSite(GroupedSite):
    """Its programs are in a control group of its own: that freezes and meters it."""

    def __init__(self, request: SiteRequest, launcher: Launcher, group: Group, refused: Mapping[str, str]) -> None:
        super().__init__(request.name, request.host, launcher, ("127.0.0.1", "127.0.0.1"), group)
        self._facts = {
            "userland": request.userland.digest,
            **{f"not honoured: {limit}": why for limit, why in refused.items()},
        }

    def facts(self) -> Mapping[str, str]:
        return self._facts


class Uts(Environment):
    """What a UTS namespace costs."""

    kind = "uts"
    summary = "native with a host name of its own"
    options = UtsOptions
    programs: ClassVar = ("unshare",)

    def check(self, options: Any, needs: Needs) -> list[str]:
        return ["a host name is no way to another host"] if needs.separate_hosts else []

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        host, run = request.host, request.run
        if not host.root:
            raise Unavailable("only root can create a UTS namespace: run as root")
        with ExitStack() as stack:
            group = host.group(request.name)
            stack.callback(group.remove)
            stack.callback(group.kill)
            refused = group.limit(request.limits)
            program = host.program(build.ensure(run.cache, run.say))
            root = str(host.userland(request.userland))
            starts = ("unshare", "--uts", program, "--root", root, "--name", "uts")
            process, stream = host.talk(Command(within(host, run, group, *starts)))
            stack.callback(process.stop)

            def why() -> str:
                return process.stop().stderr.decode(errors="replace").strip() or "its launcher was killed"

            launcher = stack.enter_context(Launcher(stream, request.name, why, environment_of(run.id)))
            site = UtsSite(request, launcher, group, refused)
            try:
                yield site
            finally:  # frozen, its launcher would not hear that it is to end
                site.thaw()


PLUGIN = Uts()
