"""The hosts of a study, opened for the length of a run."""

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.model.host import Host, RunContext
from weighbridge.model.study import Study


def open_hosts(study: Study, run: RunContext) -> dict[str, Host]:
    """The hosts that some role is on, by name; the run closes them. Unavailable names the one that cannot be had."""
    wanted = {name: study.file.hosts[name] for name in (study.server_host, *study.client_hosts, *study.storage_hosts)}
    opened: dict[str, Host] = {}
    refused: list[str] = []
    for name, options in wanted.items():  # every one is tried, so that one run tells all that is wrong
        try:
            host = registry.hosts()[options.kind].open(name, options, run, tuple(wanted.values()))
            opened[name] = run.stack.enter_context(host)
        except Unavailable as error:
            refused.append(str(error))
    if refused:
        raise Unavailable("; ".join(refused))
    return opened
