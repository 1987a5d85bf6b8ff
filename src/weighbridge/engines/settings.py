"""What an environment may ask of the engine itself, which only an engine of our own can be given."""

from dataclasses import dataclass

from weighbridge.model.disk import DiskOptions


@dataclass(frozen=True, slots=True)
class Settings:
    """``userland_proxy``: docker-proxy runs for each published port. ``nat``: netfilter carries published ports.

    Without ``nat`` docker-proxy is the path of a published port (dockerd's ``--iptables=false``). ``disk`` holds all
    of its data; None: the host's own disk does.
    """

    userland_proxy: bool = True
    nat: bool = True
    disk: DiskOptions | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of dockerd."""
        proxy = () if self.userland_proxy else ("--userland-proxy=false",)
        return (*proxy, *(() if self.nat else ("--iptables=false",)))

    @property
    def purpose(self) -> str:
        """A name for a host that is used with these settings; empty for the usual ones."""
        disk = (self.disk.purpose,) if self.disk else ()
        return "-".join((*(() if self.userland_proxy else ("noproxy",)), *(() if self.nat else ("nonat",)), *disk))


USUAL = Settings()
