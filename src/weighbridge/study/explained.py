"""The arms that explain costs: an environment without each of its mechanisms, and without all of them.

The cost of a mechanism is the difference between two arms: with the mechanism and without it. If it can only be off
together with others (``Mechanism.off_with``), these are off on both sides. If there are several mechanisms, one more
arm has all of them off. Its cost against the baseline is unexplained, and the interaction is the part of the total
cost beyond the sum of the single ones.

If a study names mechanisms of an environment, these are crossed: every possible combination of them has an arm, and
all others stay on. So a run shows which of them interact (`weighbridge.model.explained`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pydantic import ValidationError

from weighbridge import registry
from weighbridge.model.explained import PLACEBO, DescribedMechanism, Explains, switches_something
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.spelling import nearest
from weighbridge.model.storage import StorageOptions
from weighbridge.model.study import Arm, Cell, Study, StudyFile
from weighbridge.model.validation import problem_of
from weighbridge.study.contradictions import arm_problems
from weighbridge.study.source import StudyPlace, plain

ALL = "bare"
"""The end of the name of the arm that has all mechanisms off."""
Problem = Callable[[Arm], str]
"""Returns why a study cannot measure an environment, or "" if it can."""


@dataclass(frozen=True, slots=True)
class MechanismSwitch:
    """A mechanism of an environment, with both sides of the comparison that gives its cost."""

    mechanism: Mechanism
    off_with: tuple[str, ...]
    """The mechanisms that are off on both sides."""
    before: Arm | None = None
    """The environment with the mechanism, or None if that is the environment itself."""
    without: Arm | None = None
    """The environment without the mechanism."""
    refusal: str = ""
    """The reason if the mechanism cannot be switched off."""

    @property
    def kind(self) -> str:
        """The kind of the mechanism."""
        return self.mechanism.kind


def wrong_names(file: StudyFile, arms: Sequence[Arm]) -> Iterator[tuple[StudyPlace, str]]:
    """Yield the mistakes in ``explain``: unknown environments and mechanisms, and the baseline, which has no cost."""
    if file.trace is not None and not file.explain:
        yield (
            ("trace",),
            "trace: a tracer watches only environments that are explained. Add 'explain: true' or --explain",
        )
    if file.placebo and not file.explain:
        yield (
            ("placebo",),
            "placebo: only explained environments have one. Add 'explain: true' or --explain",
        )
    names = [arm.name for arm in arms]
    listed = file.explain if isinstance(file.explain, tuple) else ()
    places: list[tuple[int | str, str]] = [*enumerate(listed), *((name, name) for name in _crossed(file))]
    for key, name in places:
        place: StudyPlace = ("explain", key)
        if name in file.environments and name not in names and not any(each.startswith(f"{name}[") for each in names):
            continue  # its own mistakes are reported elsewhere
        if name not in names:
            swept = any(each.startswith(f"{name}[") for each in names)
            why = ". It is swept, so name it with its level" if swept else nearest(name, names)
            yield place, f"explain: there is no environment '{plain(name, 60)}'{why}"
        elif name == file.baseline:
            yield place, f"explain: {name} is the baseline, which has no cost. Name another environment"
    every = registry.mechanisms()
    for name, kinds in _crossed(file).items():
        for number, kind in enumerate(kinds):
            if kind not in every:
                hint = nearest(kind, every) or f". Known mechanisms: {', '.join(every)}"
                yield ("explain", name, number), f"explain: there is no mechanism '{plain(kind, 60)}'{hint}"
            elif kind in kinds[:number]:
                yield ("explain", name, number), f"explain: {kind} is named twice. Remove one"


def _crossed(file: StudyFile) -> Mapping[str, tuple[str, ...]]:
    """Return the mechanisms that are switched in every combination, by environment."""
    return file.explain if isinstance(file.explain, dict) else {}


def explained(
    file: StudyFile, arms: Sequence[Arm], cells: list[Cell]
) -> tuple[tuple[Arm, ...], tuple[DescribedMechanism, ...]]:
    """Return the arms that explain the costs of a study's environments, and the mechanisms of these environments."""
    if isinstance(file.explain, bool) and not file.explain:
        return (), ()
    baseline = next(arm for arm in arms if arm.name == file.baseline)
    named = [arm.name for arm in arms] if isinstance(file.explain, bool) else [*file.explain]
    further: list[Arm] = []
    described: list[DescribedMechanism] = []

    def problem(arm: Arm) -> str:
        return next(arm_problems(arm, file, cells), "")

    for arm in arms:
        if arm.name in named and arm.name != file.baseline:
            subject = _subject(file, arm, baseline, cells)
            switches = chain(subject, candidates(subject.named), problem)
            off = arms_of(subject, switches, problem)
            further += off
            if file.placebo and off:
                further.append(_named(arm, arm, PLACEBO, (PLACEBO,)))
            described += _described(subject, switches)
    return tuple(further), tuple(described)


def _subject(file: StudyFile, arm: Arm, baseline: Arm, cells: list[Cell]) -> Subject:
    workloads = registry.workloads()
    return Subject(
        arm, baseline, file.resources,
        networked=any(workloads[cell.kind].transports(cell.options) for cell in cells),
        stores=any(workloads[cell.kind].needs_data(cell.options) for cell in cells)
        or getattr(arm.options, "storage", None) is not None,
        usual_storage=_usual_storage(arm),
        separate_hosts=file.placement.separate_hosts,
        named=_crossed(file).get(arm.name, ()),
    )  # fmt: skip


def candidates(named: Collection[str]) -> list[Mechanism]:
    """Return the mechanisms to try, each after those that must be off with it. Without names, return all."""
    every = registry.mechanisms()
    kinds = {*named}.union(*map(_beneath, named)) or {*every}
    return [every[kind] for kind in sorted(kinds, key=lambda kind: (len(_beneath(kind)), kind))]


def chain(subject: Subject, mechanisms: Sequence[Mechanism], problem: Problem) -> list[MechanismSwitch]:
    """Return the mechanisms that the environment has, each without those before it that must be off with it."""
    switches: list[MechanismSwitch] = []
    for mechanism in mechanisms:
        beneath = _beneath(mechanism.kind)
        off_with = tuple(each.kind for each in switches if not each.refusal and each.kind in beneath)
        if switch := _switch(subject, mechanism, off_with, problem):
            switches.append(switch)
    return switches


def _switch(
    subject: Subject, mechanism: Mechanism, off_with: tuple[str, ...], problem: Problem
) -> MechanismSwitch | None:
    """Return how a mechanism is switched off, or None if it cannot be part of the cost.

    A mechanism that the study names is refused instead.
    """
    name, baseline, kind = subject.arm.name, subject.baseline, mechanism.kind
    try:
        before, without = _without(subject, off_with), _without(subject, (*off_with, kind))
        natively = _off(mechanism, subject.after(baseline)) is not None
    except ValueError as error:
        why = problem_of(error) if isinstance(error, ValidationError) else str(error)
        return MechanismSwitch(mechanism, off_with, refusal=why)
    if without is None or (natively and _alike(before or subject.arm, without, subject)):
        refusal = f"{name} has none of it, or {baseline.name} has the same"
        return MechanismSwitch(mechanism, off_with, refusal=refusal) if kind in subject.named else None
    if natively:
        return MechanismSwitch(mechanism, off_with, refusal=f"{baseline.name} has it as well, but not the same")
    if why := problem(without):
        return MechanismSwitch(mechanism, off_with, refusal=f"without it, {why}")
    return MechanismSwitch(mechanism, off_with, before, without)


def arms_of(subject: Subject, switches: Sequence[MechanismSwitch], problem: Problem) -> list[Arm]:
    """Return both sides of each comparison, and the environment with all of the mechanisms, or combinations, off."""
    arm, possible = subject.arm, [each for each in switches if not each.refusal]
    arms: dict[tuple[str, ...], Arm] = {}
    for each in possible:
        if each.before is not None:
            arms.setdefault(each.off_with, _named(each.before, arm, f"before-{each.kind}", each.off_with))
        if each.without is not None:
            off = (*each.off_with, each.kind)
            arms[off] = _named(each.without, arm, f"without-{each.kind}", off)
    every = tuple(each.kind for each in possible)
    if subject.named:
        arms |= _combinations(subject, possible, problem)
    elif len(every) > 1 and every not in arms and (bare := _without(subject, every)) is not None:
        arms[every] = _named(bare, arm, ALL, every)
    return [*arms.values()]


def _combinations(
    subject: Subject, switches: Sequence[MechanismSwitch], problem: Problem
) -> Mapping[tuple[str, ...], Arm]:
    """Return the environment with each further possible combination of its mechanisms off."""
    off_with = {each.kind: {*each.off_with} for each in switches}
    arms: dict[tuple[str, ...], Arm] = {}
    for size in range(2, len(switches) + 1):
        for off in combinations(off_with, size):
            beneath = set().union(*(off_with[kind] for kind in off))
            largest = [kind for kind in off if kind not in beneath]
            if len(largest) < 2 or not beneath <= {*off}:
                continue  # a single mechanism takes these with it, or the combination is impossible
            try:
                without = _without(subject, off, each_is_there=True)
            except ValueError:
                continue
            if without is not None and not problem(without):
                arms[off] = _named(without, subject.arm, f"without-{'-'.join(largest)}", off)
    return arms


def _described(subject: Subject, switches: Sequence[MechanismSwitch]) -> Iterator[DescribedMechanism]:
    refused: list[Mechanism] = []
    for each in switches:
        mechanism, beneath = each.mechanism, _beneath(each.kind)
        yield DescribedMechanism(
            kind=each.kind, environment=subject.arm.name, title=mechanism.title, switched=mechanism.switched,
            remedy=mechanism.remedy, source=mechanism.source, off_with=each.off_with,
            takes=tuple(other.title for other in refused if other.kind in beneath),
            counters=tuple(mechanism.counters), proof=mechanism.proof, refused=plain(each.refusal, 300),
            crossed=bool(subject.named),
        )  # fmt: skip
        if each.refusal:
            refused.append(mechanism)


def unexplained(study: Study) -> list[str]:
    """Return the environments that a study explains although none of their mechanisms is switched off."""
    asked = study.file.explain
    names = [arm.name for arm in study.arms if arm.declared and arm.name != study.file.baseline]
    if not isinstance(asked, bool):
        names = [name for name in names if name in asked]
    elif not asked:
        return []
    return [name for name in names if not any(map(switches_something, study.arms_by_off(name)))]


def not_switched(study: Study, reasons: Mapping[str, str]) -> Study:
    """Return the study without switching some mechanisms. ``reasons`` says why, for each of their kinds.

    An arm with nothing else off, or with the same mechanisms off as another arm, is dropped.
    """
    if not reasons:
        return study
    arms: dict[object, Arm] = {}
    for arm in study.arms:
        if arm.explains is None:
            arms[arm.name] = arm
        elif off := tuple(kind for kind in arm.explains.off if kind not in reasons):
            explains = arm.explains.model_copy(update={"off": off})
            arms.setdefault((explains.environment, frozenset(off)), arm.model_copy(update={"explains": explains}))
    mechanisms = tuple(
        each.model_copy(
            update={
                "refused": each.refused or reasons.get(each.kind, ""),
                "off_with": tuple(kind for kind in each.off_with if kind not in reasons),
            }
        )
        for each in study.mechanisms
    )
    return study.model_copy(update={"arms": tuple(arms.values()), "mechanisms": mechanisms})


def _alike(arm: Arm, without: Arm, subject: Subject) -> bool:
    """Return whether the baseline has the values of ``arm`` for everything that switching a mechanism off changes."""
    mine, off, natively = (
        (each.options, each.resources or subject.resources, each) for each in (arm, without, subject.baseline)
    )
    return all(
        getattr(theirs, name, None) == getattr(here, name)
        for here, there, theirs in zip(mine, off, natively, strict=True)
        for name in type(here).model_fields
        if name not in {"name", "options", "resources", "explains"}
        and getattr(here, name) != getattr(there, name, None)
    )


def _usual_storage(arm: Arm) -> StorageOptions | None:
    kind = registry.environments()[arm.kind].storage
    return registry.storage()[kind].options(kind=kind) if kind else None


def _named(without: Arm, arm: Arm, ending: str, off: tuple[str, ...]) -> Arm:
    explains = Explains(environment=arm.name, off=off)
    return without.model_copy(update={"name": f"{arm.name}-{ending}", "optional": True, "explains": explains})


def _without(subject: Subject, off: Sequence[str], *, each_is_there: bool = False) -> Arm | None:
    """Return the environment without some mechanisms, or None if it does not have the last one, or not each."""
    every = registry.mechanisms()
    arm: Arm | None = None
    for kind in off:
        arm = _off(every[kind], subject)
        if arm is not None:
            subject = subject.after(arm)
        elif each_is_there:
            return None
    return None if arm is None else subject.arm


def _off(mechanism: Mechanism, subject: Subject) -> Arm | None:
    """Return the environment without a mechanism. Raise RegistryError if the mechanism's own code fails."""
    try:
        return mechanism.off(subject)
    except ValueError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise registry.RegistryError(f"the mechanism {mechanism.kind} fails ({what}): fix or uninstall it") from error


def _beneath(kind: str) -> set[str]:
    """Return the kinds of all mechanisms that must be off with one of this kind."""
    every = registry.mechanisms()
    beneath: set[str] = set()
    waiting = [kind]
    while waiting:
        others = {other for other in every[waiting.pop()].off_with if other in every} - beneath
        beneath |= others
        waiting += others
    return beneath
