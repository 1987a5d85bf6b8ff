"""The arms that explain costs: an environment with one of its mechanisms switched off, each, and with all of them.

What a mechanism costs is the difference of two arms: with it, and without it. Where it cannot be off but with others
(``Mechanism.off_with``), these are off on both sides. Of several mechanisms one more arm has all of them off: what it
costs against the baseline is unexplained, and what the whole costs beyond the sum of the single ones is interaction.

Where a study names mechanisms of an environment, these are crossed: every combination of them that there can be has
an arm, and all others stay on. So it is told which of them interact (`weighbridge.model.explained`).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from pydantic import ValidationError

from weighbridge import registry
from weighbridge.model.explained import DescribedMechanism, Explains
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.spelling import nearest
from weighbridge.model.storage import StorageOptions
from weighbridge.model.study import Arm, Cell, Study, StudyFile
from weighbridge.model.validation import problem_of
from weighbridge.study.contradictions import misfits
from weighbridge.study.source import Place, Source, plain, written

ALL = "bare"
"""How the name of the arm ends that has all of its mechanisms off."""


def wrong_names(file: StudyFile, arms: Sequence[Arm]) -> Iterator[tuple[Place, str]]:
    """What ``explain`` names that there is not: environments, those that have no cost, mechanisms."""
    if file.trace is not None and not file.explain:
        yield (
            ("trace",),
            "trace: a tracer watches only environments that are explained. Add 'explain: true' or --explain",
        )
    names = [arm.name for arm in arms]
    listed = file.explain if isinstance(file.explain, tuple) else ()
    places: list[tuple[int | str, str]] = [*enumerate(listed), *((name, name) for name in _crossed(file))]
    for key, name in places:
        place: Place = ("explain", key)
        if name in file.environments and name not in names and not any(each.startswith(f"{name}[") for each in names):
            continue  # what is wrong with it is said of it
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
    """Return the arms that explain the costs of a study's environments, and the mechanisms of these."""
    if isinstance(file.explain, bool) and not file.explain:
        return (), ()
    baseline = next(arm for arm in arms if arm.name == file.baseline)
    named = [arm.name for arm in arms] if isinstance(file.explain, bool) else [*file.explain]
    further: list[Arm] = []
    described: list[DescribedMechanism] = []
    for arm in arms:
        if arm.name in named and arm.name != file.baseline:
            mine, mechanisms = _of_environment(file, arm, baseline, cells)
            further += mine
            described += mechanisms
    return tuple(further), tuple(described)


def _of_environment(
    file: StudyFile, arm: Arm, baseline: Arm, cells: list[Cell]
) -> tuple[list[Arm], list[DescribedMechanism]]:
    workloads = registry.workloads()
    every, named = registry.mechanisms(), _crossed(file).get(arm.name, ())
    subject = Subject(
        arm, baseline, file.resources,
        networked=any(workloads[cell.kind].transports(cell.options) for cell in cells),
        stores=any(workloads[cell.kind].needs_data(cell.options) for cell in cells)
        or getattr(arm.options, "storage", None) is not None,
        usual_storage=_usual_storage(arm),
        apart=file.placement.apart,
        named=named,
    )  # fmt: skip
    further: dict[tuple[str, ...], Arm] = {}
    described: list[DescribedMechanism] = []
    kinds = {*named}.union(*(_beneath(every, kind) for kind in named)) if named else every
    off: tuple[str, ...] = ()
    for kind in (each for each in _in_order(every) if each in kinds):
        off_with = tuple(each for each in off if each in _beneath(every, kind))
        before: Arm | None = None  # the other side of its comparison; None: the environment itself
        try:
            before, without = _without(subject, off_with), _without(subject, (*off_with, kind))
            natively = _off(every[kind], subject.after(baseline)) is not None
            if without is None or (natively and _alike(before or arm, without, subject)):
                if kind not in named:
                    continue  # it is not there, or natively as well
                raise ValueError(f"{arm.name} has none of it, or {baseline.name} has the same")
            if natively:
                raise ValueError(f"{baseline.name} has it as well, but not the same")
            refused = next((f"without it, {each}" for each in misfits(without, file, cells)), "")
        except ValueError as why:
            without, refused = None, _words(why)
        mechanism, others = every[kind], _beneath(every, kind)
        described.append(
            DescribedMechanism(
                kind=kind, environment=arm.name, title=mechanism.title, switched=mechanism.switched,
                remedy=mechanism.remedy, source=mechanism.source, off_with=off_with,
                takes=tuple(each.title for each in described if each.refused and each.kind in others),
                counters=tuple(mechanism.counters), proof=mechanism.proof, refused=plain(refused, 300),
                crossed=bool(named),
            )
        )  # fmt: skip
        if without is not None and not refused:
            off = (*off, kind)
            if before is not None and not any({*off_with} == {*each} for each in further):
                further[off_with] = _named(before, arm, f"before-{kind}", off_with)
            further[*off_with, kind] = _named(without, arm, f"without-{kind}", (*off_with, kind))
    if named:
        further |= _combinations(file, subject, [each for each in described if each.kind in off], cells)
    elif len(off) > 1 and not any({*off} == {*each} for each in further):
        bare = _without(subject, off)
        if bare is not None:
            further[off] = _named(bare, arm, ALL, off)
    return [*further.values()], described


def unexplained(study: Study) -> list[str]:
    """Return the environments whose costs are to be explained and of which nothing is switched off."""
    asked = study.file.explain
    names = [arm.name for arm in study.arms if arm.own and arm.name != study.file.baseline]
    if not isinstance(asked, bool):
        names = [name for name in names if name in asked]
    elif not asked:
        return []
    return [name for name in names if len(study.arms_by_off(name)) == 1]


def not_switched(study: Study, reasons: Mapping[str, str]) -> Study:
    """Return the study where some mechanisms stay as they are, by kind why: what is off in their arms is the rest.

    An arm that has nothing else off, or the same as another one, is none of its arms.
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
    """Whether the baseline has of a mechanism what ``arm`` has: of all that is changed by switching it off."""
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


def _combinations(
    file: StudyFile, subject: Subject, mechanisms: Sequence[DescribedMechanism], cells: list[Cell]
) -> Mapping[tuple[str, ...], Arm]:
    """Return the environment with each further combination of its mechanisms off that there can be."""
    off_with = {each.kind: {*each.off_with} for each in mechanisms}
    further: dict[tuple[str, ...], Arm] = {}
    for size in range(2, len(mechanisms) + 1):
        for off in combinations(off_with, size):
            beneath = set().union(*(off_with[kind] for kind in off))
            largest = [kind for kind in off if kind not in beneath]
            if len(largest) < 2 or not beneath <= {*off}:
                continue  # it is what a single one takes, or cannot be
            try:
                without = _without(subject, off, each_is_there=True)
            except ValueError:
                continue
            if without is not None and next(misfits(without, file, cells), "") == "":
                further[off] = _named(without, subject.arm, f"without-{'-'.join(largest)}", off)
    return further


def _words(error: ValueError) -> str:
    """Return what an error of a mechanism, or of a model's validation, says, in one line."""
    return problem_of(error) if isinstance(error, ValidationError) else str(error)


def _named(without: Arm, arm: Arm, ending: str, off: tuple[str, ...]) -> Arm:
    explains = Explains(environment=arm.name, off=off)
    return without.model_copy(update={"name": f"{arm.name}-{ending}", "optional": True, "explains": explains})


def _without(subject: Subject, off: Sequence[str], *, each_is_there: bool = False) -> Arm | None:
    """Return the environment without some mechanisms; None where it does not have the last one, or each of them."""
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
    """Return the environment without a mechanism; RegistryError where the mechanism's own code fails."""
    try:
        return mechanism.off(subject)
    except ValueError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise registry.RegistryError(f"the mechanism {mechanism.kind} fails ({what}): fix or uninstall it") from error


def _in_order(every: Mapping[str, Mechanism]) -> list[str]:
    """Return their kinds, each after those that have to be off with it."""
    return sorted(every, key=lambda kind: (len(_beneath(every, kind)), kind))


def _beneath(every: Mapping[str, Mechanism], kind: str) -> set[str]:
    """Return the kinds that have to be off with one, and with those."""
    found: set[str] = set()
    waiting = [kind]
    while waiting:
        for other in every[waiting.pop()].off_with:
            if other in every and other not in found:
                found.add(other)
                waiting.append(other)
    return found


def why_study(
    source: Source,
    baseline: str,
    environment: str,
    workload: str,
    crossed: Sequence[str] = (),
    *,
    client: str = "",
    trace: str | None = None,
) -> str:
    """Return the text of a study that explains the cost of one environment in one workload of another study.

    ``environment`` may be one level of a swept one. ``crossed`` are the mechanisms to switch in every combination;
    none: each by itself. ``client`` is the host of the clients whose cost it is, of several: what others need could
    not be switched off. ``trace``: a tracer that is to watch it. What the text says beside that stays.
    """
    data = dict(source.data)
    name = environment.partition("[")[0]
    data["study"] = f"why-{plain(str(data['study']).removeprefix('why-'), 30)}"
    data["question"] = f"Why does {environment} cost what it does, in {workload}?"
    data["environments"] = {each: dict(data["environments"][each]) for each in (baseline, name)}
    data["workloads"] = {workload: data["workloads"][workload]}
    data["explain"] = {environment: [*crossed]} if crossed else [environment]
    if client:
        data["placement"] = {**data["placement"], "client": client}
        hosts = data["placement"].values()
        data["hosts"] = {host: options for host, options in data["hosts"].items() if host in hosts}
        for options in data["environments"].values():
            options.pop("clients", None)
    if trace is not None:
        data["trace"] = trace
    for key in ("ladder", "profiles"):
        data.pop(key, None)
    return written(data)
