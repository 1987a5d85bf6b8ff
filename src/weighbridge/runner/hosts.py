"""The hosts of a study, opened for the length of a run."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from weighbridge.engines.client import bridge_prefix
from weighbridge.errors import Unavailable
from weighbridge.hosts.local import LocalHost
from weighbridge.hosts.switch import Switch
from weighbridge.hosts.testbed import testbed_host
from weighbridge.model.site import Host, RunContext
from weighbridge.model.study import SshOptions, Study, TestbedOptions


def open_hosts(study: Study, run: RunContext) -> dict[str, Host]:
    """The hosts that some role is on, by name; the run closes them. Unavailable names the one that cannot be had."""
    wanted = dict.fromkeys((study.server_host, *study.client_hosts))
    opened: dict[str, Host] = {}
    refused: list[str] = []
    for name in wanted:  # every one is tried, so that one run tells all that is wrong
        try:
            opened[name] = run.stack.enter_context(_host(name, study, run))
        except Unavailable as error:
            refused.append(str(error))
    if refused:
        raise Unavailable("; ".join(refused))
    return opened


def _host(name: str, study: Study, run: RunContext) -> AbstractContextManager[Host]:
    options = study.file.hosts[name]
    if isinstance(options, TestbedOptions):
        return testbed_host(name, options, run)
    if isinstance(options, SshOptions):
        from weighbridge.hosts.ssh import ssh_host

        run.say(f"connecting to host {name} ({options.destination})")
        return ssh_host(name, options, run)
    others = (study.file.hosts[host] for host in (study.server_host, *study.client_hosts))
    joined = any(isinstance(other, TestbedOptions) for other in others)
    return _joined(name, run) if joined else nullcontext(LocalHost(run.id, name))


@contextmanager
def _joined(name: str, run: RunContext) -> Iterator[Host]:
    """This machine, with a cable to the switch of its testbed hosts."""
    switch: Switch = run.share("switch", lambda: Switch.made(run))
    with switch.uplink(f"{bridge_prefix(run.id)}v1000") as address:
        yield LocalHost(run.id, name, address)
