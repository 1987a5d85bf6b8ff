"""What a userland has to hold."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UserlandSpec:
    """Debian packages, and the Maven and Go projects below ``weighbridge/java`` and ``weighbridge/golang``.

    Each is sorted and free of repetitions, so that equal needs are equal values.
    """

    packages: tuple[str, ...] = ()
    maven: tuple[str, ...] = ()
    golang: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, packages: Iterable[str] = (), maven: Iterable[str] = (), golang: Iterable[str] = ()
    ) -> "UserlandSpec":
        """Make one of names in any order; empty names (a workload without a project) are left out."""
        return cls(*(tuple(sorted({*names} - {""})) for names in (packages, maven, golang)))

    @classmethod
    def union(cls, specs: "Iterable[UserlandSpec]") -> "UserlandSpec":
        """Return what holds everything that any of them needs."""
        every = list(specs)
        return cls.of(
            (name for spec in every for name in spec.packages),
            (name for spec in every for name in spec.maven),
            (name for spec in every for name in spec.golang),
        )
