"""The protocol of mechanisms: parts of an environment that ``explain`` can switch off.

A mechanism is switched off through settings that a study can write: options, limits, storage, root filesystem. Its
cost is measured in the same rounds as everything else, in an additional environment (`Arm.explains`).
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_origin

from weighbridge.model.explained import Proof
from weighbridge.model.options import STORED, Options
from weighbridge.model.plugin import Plugin
from weighbridge.model.storage import StorageOptions
from weighbridge.model.study import Arm, Resources


@dataclass(frozen=True, slots=True)
class Subject:
    """An environment whose cost is being explained. Other mechanisms can be off already."""

    arm: Arm
    """The environment with its options."""
    baseline: Arm
    """The study's baseline with its options."""
    resources: Resources
    """The study's limits."""
    networked: bool = False
    """Whether a workload has a client and a server."""
    stores: bool = False
    """Whether there is storage, because a workload keeps data or the environment names a storage."""
    usual_storage: StorageOptions | None = None
    """The environment's storage if the study names none."""
    separate_hosts: bool = False
    """Whether all clients are on other hosts than the servers."""
    named: Collection[str] = ()
    """The mechanisms that the study names for this environment. Empty means all."""

    def option(self, name: str) -> Any:
        """Return the value of an option, or None if this kind of environment does not have the option."""
        return getattr(self.arm.options, name, None)

    def can_be(self, name: str, value: object) -> bool:
        """Return whether this kind of environment has an option of this name that accepts this value."""
        field = type(self.arm.options).model_fields.get(name)
        return field is not None and value in _literals(field.annotation)

    def with_options(self, *, without: Collection[str] = (), **changed: Any) -> Arm:
        """Return the environment with changed options. Options in ``without`` go back to their defaults.

        Quantities are in their base units. Raises ValueError if the options are not valid together.
        """
        options = self.arm.options
        kept = {name: getattr(options, name) for name in options.model_fields_set if name not in without}
        written = {**kept, **changed}
        return self.with_arm(options=type(options).model_validate(written, context={STORED: True}))

    def with_arm(self, **changed: Any) -> Arm:
        """Return the environment with changed common keys: ``resources``, ``sysctls``, ``userland``."""
        return self.arm.model_copy(update=changed)

    def with_usual_storage(self) -> Arm:
        """Return the environment with the storage that it has if a study names none."""
        return self.with_options(storage=self.usual_storage)

    def with_usual_limits(self, own: Resources, *names: str) -> Arm:
        """Return the environment with the study's limits ``names`` instead of its ``own`` values for them."""
        limits = own.model_copy(update={name: getattr(self.resources, name) for name in names})
        return self.with_arm(resources=None if limits == self.resources else limits)

    def after(self, arm: Arm) -> "Subject":
        """Return the subject that remains to be explained after a mechanism was switched off."""
        return replace(self, arm=arm)


def _literals(annotation: Any) -> tuple[object, ...]:
    """Return the values of a `Literal`, or of those in a union."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(value for part in get_args(annotation) for value in _literals(part))


class Mechanism(Plugin):
    """A part of an environment that ``explain`` can switch off: how, how to prove it, and what users can do about it.

    A mechanism looks at options, not at kinds: every environment with an option ``encrypted`` has the same mechanism.
    """

    options = Options
    title: str
    """The usual name of it, such as "system-call filter (seccomp)"."""
    switched: str
    """The change that switches it off, such as "Docker's filter → none"."""
    remedy: str
    """The change that users can make to avoid the cost, in a few words."""
    source: str
    """A publication or manual that describes it or its cost."""
    off_with: Collection[str] = ()
    """The kinds of mechanisms that must be off as well, such as a published port on a network."""
    counters: Sequence[str] = ()
    """Prefixes of the resource metrics that show its work. The report compares these metrics and shows them next to
    its cost."""
    proof: Proof | None = None
    """The fact that shows that it is off. None if no fact of a site shows it."""

    @abstractmethod
    def off(self, subject: Subject) -> Arm | None:
        """Return the environment without the mechanism, or None if there is nothing to switch off.

        Raises ValueError with the reason if the mechanism must stay on. ``plan`` and the report then show the reason.
        The same happens if the environment does not accept an option or value.
        """

    def absent(self, read: Callable[[str], bytes]) -> str:
        """Return why a machine cannot have the mechanism in any environment, or "" if it can.

        ``read`` returns the contents of a file of that machine; it can raise OSError. The text is a part of a
        sentence: "this kernel has no ...".
        """
        return ""


SwitchOff = Callable[[Subject], Arm | None]
"""Returns an environment without a mechanism, or None if there is nothing to switch off (`Mechanism.off`)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DeclaredMechanism(Mechanism):
    """A mechanism that needs no class of its own: all its attributes are given when it is created."""

    kind: str
    summary: str
    title: str
    switched: str
    remedy: str
    source: str
    off_with: Collection[str] = ()
    counters: Sequence[str] = ()
    proof: Proof | None = None
    switch_off: SwitchOff
    """What `off` returns. `set_options` makes such a function for a mechanism that one option switches."""
    reason_absent: Callable[[Callable[[str], bytes]], str] | None = None
    """What `absent` returns, if a machine can be without the mechanism."""

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment without the mechanism, or None if there is nothing to switch off."""
        return self.switch_off(subject)

    def absent(self, read: Callable[[str], bytes]) -> str:
        """Return why a machine cannot have the mechanism, or "" if it can."""
        return "" if self.reason_absent is None else self.reason_absent(read)


def set_options(
    off: Mapping[str, Any],
    *,
    only: Mapping[str, object] | None = None,
    unless: Mapping[str, object] | None = None,
    needs: Literal["network", "storage"] | None = None,
) -> SwitchOff:
    """Return the function that switches a mechanism off by setting options to the values ``off``.

    The mechanism is on if one of these options has another value. ``only`` are options that must have the given
    values for that, and ``unless`` are options that must not have them. ``needs`` restricts it to studies with a
    client and a server, or with storage.
    """

    def without(subject: Subject) -> Arm | None:
        used = {"network": subject.networked, "storage": subject.stores}
        is_on = (
            differs(subject.arm.options, off)
            and (needs is None or used[needs])
            and all(subject.option(name) == value for name, value in (only or {}).items())
            and not any(subject.option(name) == value for name, value in (unless or {}).items())
        )
        return subject.with_options(**off) if is_on else None

    return without


def differs(settings: object, off: Mapping[str, object]) -> bool:
    """Return whether one of the attributes ``off`` has a value other than None and the given value."""
    return any(getattr(settings, name, None) not in (None, value) for name, value in off.items())
