"""A root file system with the programs that are measured, and what it has to hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.model.command import ProcessDefaults


@dataclass(frozen=True, slots=True)
class UserlandSpec:
    """Debian packages, and the Maven, Go and C projects below ``weighbridge/java``, ``golang`` and ``c``.

    Each is sorted and free of repetitions, so that equal needs are equal values.
    """

    packages: tuple[str, ...] = ()
    maven: tuple[str, ...] = ()
    golang: tuple[str, ...] = ()
    c: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        packages: Iterable[str] = (),
        maven: Iterable[str] = (),
        golang: Iterable[str] = (),
        c: Iterable[str] = (),
    ) -> "UserlandSpec":
        """Make one of names in any order; empty names (a workload without a project) are left out."""
        return cls(*(tuple(sorted({*names} - {""})) for names in (packages, maven, golang, c)))

    @classmethod
    def union(cls, specs: "Iterable[UserlandSpec]") -> "UserlandSpec":
        """Return what holds everything that any of them needs."""
        every = list(specs)
        return cls.of(
            (name for spec in every for name in spec.packages),
            (name for spec in every for name in spec.maven),
            (name for spec in every for name in spec.golang),
            (name for spec in every for name in spec.c),
        )


@dataclass(frozen=True, slots=True)
class Userland:
    """A built root file system: ``root`` is its folder, ``tar`` the same as an archive; None where it is not packed.

    ``digest`` is the SHA-256 of its contents; ``versions`` maps each Debian package to its version.
    """

    digest: str
    root: Path
    tar: Path | None
    versions: Mapping[str, str]
    process: ProcessDefaults = field(default_factory=ProcessDefaults)
    layered: str = ""
    """A folder of it to which each site can write, in memory: what it holds stays as it is. "": none."""

    def archive(self) -> Path:
        """The archive. Raises Unavailable where there is none."""
        if self.tar is None:
            raise Unavailable(
                "the userland is this machine's own root file system, which other machines, guests and most engines "
                "cannot have: use another source of userlands, or environments native, netns and docker here"
            )
        return self.tar


@dataclass(frozen=True, slots=True)
class Userlands:
    """The userlands of a run: the usual one, and that of the clients of servers where theirs is another."""

    usual: Userland
    clients: Userland | None = None

    def of(self, role: str) -> Userland:
        """Return that of a role's sites."""
        return self.usual if self.clients is None or role != "client" else self.clients
