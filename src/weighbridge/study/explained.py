"""The arms that explain costs: an environment with one of its mechanisms switched off, each, and with all of them.

What a mechanism costs is the difference of two arms: with it, and without it. Where it cannot be off but with others
(``Mechanism.off_with``), these are off on both sides. Of several mechanisms one more arm has all of them off: what it
costs against the baseline is unexplained, and what the whole costs beyond the sum of the single ones is interaction.
"""

from collections.abc import Iterator, Mapping, Sequence

from weighbridge import registry
from weighbridge.model.explained import DescribedMechanism, Explains
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.storage import StorageOptions
from weighbridge.model.study import Arm, Cell, StudyFile
from weighbridge.study.contradictions import misfits
from weighbridge.study.source import Place, Source, nearest, plain, written

ALL = "bare"
"""How the name of the arm ends that has all of its mechanisms off."""


def wrong_names(file: StudyFile, arms: Sequence[Arm]) -> Iterator[tuple[Place, str]]:
    """Environments named by ``explain`` that there are none of, or that have no cost."""
    names = [arm.name for arm in arms]
    for number, name in enumerate(file.explain if isinstance(file.explain, tuple) else ()):
        place: Place = ("explain", number)
        if name not in names:
            swept = any(each.startswith(f"{name}[") for each in names)
            why = ": it is swept; name it with its level" if swept else nearest(name, names)
            yield place, f"explain: there is no environment '{plain(name, 60)}'{why}"
        elif name == file.baseline:
            yield place, f"explain: {name} is the baseline, which has no cost: name another environment"


def explained(
    file: StudyFile, arms: Sequence[Arm], cells: list[Cell]
) -> tuple[tuple[Arm, ...], tuple[DescribedMechanism, ...]]:
    """Return the arms that explain the costs of a study's environments, and the mechanisms of these."""
    if not file.explain:
        return (), ()
    baseline = next(arm for arm in arms if arm.name == file.baseline)
    named = file.explain if isinstance(file.explain, tuple) else [arm.name for arm in arms]
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
    subject = Subject(
        arm, baseline, file.resources,
        networked=any(workloads[cell.kind].transports(cell.options) for cell in cells),
        stores=any(workloads[cell.kind].needs_data(cell.options) for cell in cells)
        or getattr(arm.options, "storage", None) is not None,
        usual_storage=_usual_storage(arm),
    )  # fmt: skip
    further: dict[tuple[str, ...], Arm] = {}
    described: list[DescribedMechanism] = []
    every = registry.mechanisms()
    off: tuple[str, ...] = ()
    for kind in _in_order(every):
        off_with = tuple(each for each in off if each in _beneath(every, kind))
        try:
            without = _without(subject, (*off_with, kind))
            if without is None or every[kind].off(subject.after(baseline)) is not None:
                continue  # it is not there, or natively as well
            refused = next(misfits(without, file, cells), "")
        except ValueError as why:
            without, refused = None, _words(why)
        mechanism, others = every[kind], _beneath(every, kind)
        described.append(
            DescribedMechanism(
                kind=kind, environment=arm.name, title=mechanism.title, switched=mechanism.switched,
                remedy=mechanism.remedy, source=mechanism.source, off_with=off_with,
                takes=tuple(each.title for each in described if each.refused and each.kind in others),
                counters=tuple(mechanism.counters), proof=mechanism.proof, refused=plain(refused, 300),
            )
        )  # fmt: skip
        if without is not None and not refused:
            off = (*off, kind)
            if off_with and not any({*off_with} == {*each} for each in further):  # several, each off by itself
                alone = _without(subject, off_with)
                assert alone is not None  # each of them is off in an arm
                further[off_with] = _named(alone, arm, f"with-{kind}-alone", off_with)
            further[*off_with, kind] = _named(without, arm, f"without-{kind}", (*off_with, kind))
    if len(off) > 1 and not any({*off} == {*each} for each in further):
        bare = _without(subject, off)
        if bare is not None:
            further[off] = _named(bare, arm, ALL, off)
    return [*further.values()], described


def _usual_storage(arm: Arm) -> StorageOptions | None:
    kind = registry.environments()[arm.kind].storage
    return registry.storage()[kind].options(kind=kind) if kind else None


def _words(error: ValueError) -> str:
    """Return what an error of a mechanism, or of a model's validation, says, in one line."""
    errors = getattr(error, "errors", None)
    return str(errors()[0]["msg"] if callable(errors) else error)


def _named(without: Arm, arm: Arm, ending: str, off: tuple[str, ...]) -> Arm:
    explains = Explains(environment=arm.name, off=off)
    return without.model_copy(update={"name": f"{arm.name}-{ending}", "optional": True, "explains": explains})


def _without(subject: Subject, off: Sequence[str]) -> Arm | None:
    """Return the environment without some mechanisms; None where it does not have the last one."""
    every = registry.mechanisms()
    arm: Arm | None = None
    for kind in off:
        arm = every[kind].off(subject)
        if arm is not None:
            subject = subject.after(arm)
    return None if arm is None else subject.arm


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


def why_study(source: Source, baseline: str, environment: str, workload: str) -> str:
    """Return the text of a study that explains the cost of one environment in one workload of another study.

    ``environment`` may be one level of a swept one. What the text says beside that stays.
    """
    data = dict(source.data)
    name = environment.partition("[")[0]
    data["study"] = f"why-{plain(str(data['study']), 30)}"
    data["question"] = f"Why does {environment} cost what it does, in {workload}?"
    data["environments"] = {each: data["environments"][each] for each in (baseline, name)}
    data["workloads"] = {workload: data["workloads"][workload]}
    data["explain"] = [environment]
    for key in ("ladder", "profiles"):
        data.pop(key, None)
    return written(data)
