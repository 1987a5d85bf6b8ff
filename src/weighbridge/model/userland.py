"""A root file system with the programs that are measured, and what it has to hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.model.command import ProcessDefaults


@dataclass(frozen=True, slots=True)
class UserlandSpec:
    """Debian packages, and the names of the Maven, Go and C projects of Weighbridge.

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

    ``digest`` is the SHA-256 of its contents, "" as long as these are not known; ``versions`` maps each Debian
    package to its version.
    """

    digest: str
    root: Path
    tar: Path | None
    versions: Mapping[str, str]
    process: ProcessDefaults = field(default_factory=ProcessDefaults)
    layered: str = ""
    """A folder of it to which each site can write, in memory: what it holds stays as it is. "": none."""
    reference: str = ""
    """The name and digest by which a registry has the image that it was read from; "": none is known."""

    @property
    def of_this_machine(self) -> bool:
        """Whether it is this machine's own root folder, whose programs have the rights of the user who runs them."""
        return self.tar is None

    def archive(self) -> Path:
        """The archive. Raises Unavailable where there is none."""
        if self.tar is None:
            raise Unavailable(
                "other machines, guests and most engines cannot use this machine's root file system as their "
                "userland: choose another userland, or an environment on this machine such as native"
            )
        return self.tar


USUAL_SCOPE, CLIENTS_SCOPE = "userland", "client userland"
"""The scopes of the facts of the userlands that most environments have, and clients outside of them."""
_OWN, _PACKAGES, _MEASURED = "userland of ", " packages", " packages measured"


def own_userland_scope(environment: str) -> str:
    """The scope of the facts of a userland that an environment has to itself."""
    return f"{_OWN}{environment}"


def packages_scope(userland: str) -> str:
    """The scope of the facts of all packages of a userland, whose own scope is given: name -> version."""
    return f"{userland}{_PACKAGES}"


def measured_packages_scope(userland: str) -> str:
    """The scope of the facts of those of its packages that have the programs which are measured."""
    return f"{userland}{_MEASURED}"


def is_userland_scope(scope: str) -> bool:
    """Whether a scope is that of a userland itself, and not of its packages."""
    named = scope in (USUAL_SCOPE, CLIENTS_SCOPE) or scope.startswith(_OWN)
    return named and not scope.endswith((_PACKAGES, _MEASURED))


@dataclass(frozen=True, slots=True)
class Userlands:
    """The userlands of a run: the usual one, and those of others.

    ``clients``: that of the clients of servers, where theirs is another. ``own``: those of environments that have one
    to themselves, by the environment's name.
    """

    usual: Userland
    clients: Userland | None = None
    own: Mapping[str, Userland] = field(default_factory=dict)

    def of(self, role: str, environment: str) -> Userland:
        """Return that of a role's sites in an environment, or outside of all of them."""
        if role == "client" and self.clients is not None:
            return self.clients
        return self.own.get(environment, self.usual)
