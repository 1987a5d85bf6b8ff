"""What every kind of site has by its launcher: programs, files, and how it is frozen."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from weighbridge.launcher.launch import Launcher
from weighbridge.model.isolation import Layers
from weighbridge.model.site import Host, Link


class LaunchedSite(ABC):
    """The part of ``Site`` that is the same everywhere: a kind of site adds what is abstract here.

    ``addresses``: where the other role reaches it, and to which its servers bind.
    """

    def __init__(self, name: str, host: Host, launcher: Launcher, addresses: tuple[str, str]) -> None:
        self.name = name
        self.address, self.listen = addresses
        self.host = host
        self.links: tuple[Link, ...] = ()
        self.open_files = launcher.open_files
        self.layers: Layers = host.layers
        """A hypervisor's site adds its own."""
        self.run, self.start, self.read, self.put = launcher.run, launcher.start, launcher.read, launcher.put
        self.listening = launcher.listening
        self._launcher = launcher
        self._frozen = False

    def freeze(self) -> None:
        """Stop every process in the site from running, where there is one beside its launcher."""
        if not self._frozen and not self._launcher.alone():
            self._pause()
            self._frozen = True

    def thaw(self) -> None:
        """Let them run again."""
        if self._frozen:
            self._resume()
            self._frozen = False

    @abstractmethod
    def _pause(self) -> None:
        """Stop every process, the launcher too."""

    @abstractmethod
    def _resume(self) -> None:
        """Let every process run again."""

    @abstractmethod
    def meters(self) -> Mapping[str, float]:
        """As ``Site.meters``."""

    @abstractmethod
    def scope(self) -> Mapping[str, str]:
        """As ``Site.scope``."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """As ``Site.facts``."""
