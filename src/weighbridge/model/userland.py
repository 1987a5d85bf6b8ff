"""A root file system with the measured programs, and the specification of its contents."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.model.command import ProcessDefaults


@dataclass(frozen=True, slots=True)
class UserlandSpec:
    """The contents of a userland: sorted Debian packages, and Maven, Go and C projects of Weighbridge."""

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
        """Return a specification from names in any order, without empty names (a workload without a project)."""
        return cls(*(tuple(sorted({*names} - {""})) for names in (packages, maven, golang, c)))

    @classmethod
    def union(cls, specs: "Iterable[UserlandSpec]") -> "UserlandSpec":
        """Return a specification with everything that any of these needs."""
        every = list(specs)
        return cls.of(*([name for spec in every for name in getattr(spec, kind.name)] for kind in fields(cls)))


@dataclass(frozen=True, slots=True)
class Userland:
    """A built root file system. ``root`` is its folder, ``tar`` the same as an archive, or None if it is not packed.

    ``digest`` is the SHA-256 of its contents, "" while these are unknown; ``versions`` maps each Debian package to
    its version.
    """

    digest: str
    root: Path
    tar: Path | None
    versions: Mapping[str, str]
    process: ProcessDefaults = field(default_factory=ProcessDefaults)
    layered: str = ""
    """A folder of it to which each site can write in memory, so that the folder itself does not change; "" for none.
    """
    reference: str = ""
    """The name and digest of its image in a registry; "" if unknown."""

    @property
    def of_this_machine(self) -> bool:
        """Whether it is this machine's own root folder, whose programs have the rights of the user who runs them."""
        return self.tar is None

    def archive(self) -> Path:
        """Return the archive. Raises Unavailable if there is none."""
        if self.tar is None:
            raise Unavailable(
                "other machines, guests and most engines cannot use this machine's root file system as their "
                "userland: choose another userland, or an environment on this machine such as native"
            )
        return self.tar


USUAL_SCOPE, CLIENTS_SCOPE = "userland", "client userland"
"""The scopes of the facts about the usual userland, and about the userland of clients outside of environments."""
_OWN, _PACKAGES, _MEASURED = "userland of ", " packages", " packages measured"


def own_userland_scope(environment: str) -> str:
    """Return the scope of the facts about an environment's own userland."""
    return f"{_OWN}{environment}"


def packages_scope(userland: str) -> str:
    """Return the scope of the facts about all packages of a userland, from the userland's scope: name -> version."""
    return f"{userland}{_PACKAGES}"


def measured_packages_scope(userland: str) -> str:
    """Return the scope of the facts about the packages of a userland that contain the measured programs."""
    return f"{userland}{_MEASURED}"


def is_userland_scope(scope: str) -> bool:
    """Return whether a scope belongs to a userland itself, and not to its packages."""
    named = scope in (USUAL_SCOPE, CLIENTS_SCOPE) or scope.startswith(_OWN)
    return named and not scope.endswith((_PACKAGES, _MEASURED))


@dataclass(frozen=True, slots=True)
class Userlands:
    """The userlands of a run: the usual one, and special ones.

    ``clients`` is the userland of clients, if it is another. ``by_environment`` has the userlands of environments
    that do not use the usual one.
    """

    usual: Userland
    clients: Userland | None = None
    by_environment: Mapping[str, Userland] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Userland, ...]:
        """All userlands, the usual one first."""
        return tuple(each for each in (self.usual, self.clients, *self.by_environment.values()) if each is not None)

    def of(self, role: str, environment: str) -> Userland:
        """Return the userland of a role's sites in an environment, or outside of all of them."""
        if role == "client" and self.clients is not None:
            return self.clients
        return self.by_environment.get(environment, self.usual)
