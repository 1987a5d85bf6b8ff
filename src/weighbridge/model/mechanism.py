"""What a mechanism has to be: one thing that an environment does beside running programs, and can do without.

It is switched off by what a study can write of an environment: its options, limits, storage, userland. So what it
costs is measured in the same blocks as everything else, in an arm of its own (`Arm.explains`).
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args, get_origin

from weighbridge.model.explained import Proof
from weighbridge.model.options import STORED, Options
from weighbridge.model.plugin import Plugin
from weighbridge.model.storage import StorageOptions
from weighbridge.model.study import Arm, Resources


@dataclass(frozen=True, slots=True)
class Subject:
    """An environment whose cost is to be explained, or what is left of it where other mechanisms are off already.

    ``resources`` are the study's limits, ``networked`` whether a workload has a client and a server, ``stores``
    whether there is storage: a workload keeps data, or the environment names one. ``usual_storage`` is what its
    environment has where a study names none, ``apart`` whether all clients are on other hosts than the servers.
    ``named`` are the mechanisms that the study names for this environment; none: it asks for all.
    """

    arm: Arm
    baseline: Arm
    resources: Resources
    networked: bool = False
    stores: bool = False
    usual_storage: StorageOptions | None = None
    apart: bool = False
    named: Collection[str] = ()

    def option(self, name: str) -> Any:
        """Return the value of an option; None where environments of its kind have none of this name."""
        return getattr(self.arm.options, name, None)

    def can_be(self, name: str, value: object) -> bool:
        """Whether environments of its kind have an option of this name that takes this value."""
        field = type(self.arm.options).model_fields.get(name)
        return field is not None and value in _literals(field.annotation)

    def with_options(self, *, without: Collection[str] = (), **changed: Any) -> Arm:
        """Return the environment with other options, and ``without`` some; quantities are in their base units.

        ValueError where they cannot be so.
        """
        options = self.arm.options
        kept = {name: getattr(options, name) for name in options.model_fields_set if name not in without}
        written = {**kept, **changed}
        return self.with_arm(options=type(options).model_validate(written, context={STORED: True}))

    def with_arm(self, **changed: Any) -> Arm:
        """Return the environment with other fields of `Arm`: ``resources``, ``sysctls``, ``userland``."""
        return self.arm.model_copy(update=changed)

    def with_usual_storage(self) -> Arm:
        """Return the environment with what its data are on where a study says nothing."""
        return self.with_options(storage=self.usual_storage)

    def with_usual_limits(self, own: Resources, *names: str) -> Arm:
        """Return the environment with these of the study's limits in place of its ``own``."""
        limits = own.model_copy(update={name: getattr(self.resources, name) for name in names})
        return self.with_arm(resources=None if limits == self.resources else limits)

    def after(self, arm: Arm) -> "Subject":
        """Return what is left to explain of an environment where a mechanism is off."""
        return replace(self, arm=arm)


def _literals(annotation: Any) -> tuple[object, ...]:
    """Return the values of a `Literal`, or of those in a union."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(value for part in get_args(annotation) for value in _literals(part))


class Mechanism(Plugin):
    """How it is switched off, what shows that it is, and what a user can do about its cost."""

    options = Options
    title: ClassVar[str]
    """What people call it: "system-call filter (seccomp)"."""
    switched: ClassVar[str]
    """From what to what: "Docker's filter → none"."""
    remedy: ClassVar[str]
    """What a user can change, in a few words."""
    source: ClassVar[str]
    """Who describes it, or found that it costs something."""
    off_with: ClassVar[Collection[str]] = ()
    """The kinds of mechanisms that have to be off as well, where an environment has them."""
    counters: ClassVar[Sequence[str]] = ()
    """How the names of metrics begin that tell of its work; they are compared and stand beside its cost."""
    proof: ClassVar[Proof | None] = None
    """None: nothing that is read of a site tells whether it is off."""

    @abstractmethod
    def off(self, subject: Subject) -> Arm | None:
        """Return the environment without the mechanism.

        None where it has none, or its baseline has the same. ValueError says why it cannot be switched off.
        """

    def absent(self, read: Callable[[str], bytes]) -> str:
        """Why a machine has none of it, whatever its environments are; "" where it may have it.

        ``read`` reads a file of that machine, and may raise OSError. A part of a sentence: "this kernel has no ...".
        """
        return ""
