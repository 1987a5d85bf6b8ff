"""The methods of a run as a paper describes them, in sentences. Every number comes from the run."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from statistics import median

from weighbridge.analysis.judgement import DISTRUST
from weighbridge.analysis.remarks.cost import TargetMissed
from weighbridge.analysis.remarks.rounds import Extended, Unfinished
from weighbridge.analysis.results import Analysis, Comparison, TrustReason
from weighbridge.analysis.run_result import RunResult
from weighbridge.analysis.sessions import HOST
from weighbridge.model.address import grouped
from weighbridge.model.explained import PLACEBO
from weighbridge.model.flag import FlagCode
from weighbridge.model.host import NODE
from weighbridge.model.stored_study import StoredStudy
from weighbridge.model.text import one_line
from weighbridge.report.export.json import run_result
from weighbridge.report.text.conditions import left_out_lines
from weighbridge.report.text.environments import display_name, names_of, reference_words, use_display_names
from weighbridge.report.text.formatting import level, listed, margin, plural, quantity, share_size, whole
from weighbridge.report.text.metric_names import metric_phrase
from weighbridge.report.text.remarks import remark_text, remark_texts
from weighbridge.report.text.summary import nothing_sentence
from weighbridge.report.text.trust import disturbance_words, unchecked_sentence
from weighbridge.report.text.verdicts import duration_text
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import ALPHA
from weighbridge.store.extensions import came_to_its_end
from weighbridge.store.reader import TIME_IS_OVER
from weighbridge.store.run import RunStore

MOST_PACKAGES = 8
"""The most packages that the paragraph names."""
_UNNAMED = "a hypervisor (unnamed)"


def methods_sentences(store: RunStore, analysis: Analysis, document: RunResult | None = None) -> list[str]:
    """Return the sentences of a paragraph for the methods section of a paper, each in one line.

    ``document`` is the result of the run, if it is known already.
    """
    document = document or run_result(store, analysis)
    with use_display_names(names_of(analysis)):
        sentences = [
            *_subject(store, analysis, document),
            *_explained(store.study()),
            *_machines(analysis, document),
            *_programs(document),
            *_limits(analysis, store.study()),
            *_rounds(store, analysis),
            *_end(store, analysis),
            *_costs(analysis, document),
            *_control(analysis, document),
            *_trials(analysis),
            *_reservations(analysis),
        ]
    return [one_line(f"{each[:1].upper()}{each[1:]}") for each in sentences if each]


# -- what was measured, and where ------------------------------------------------------------------


def _subject(store: RunStore, analysis: Analysis, document: RunResult) -> Iterator[str]:
    kinds = {name: kind for name, kind, *_ in store.environments()}
    workloads = {cell.workload: cell.kind for cell in store.cells()}
    levels = f" at {len(analysis.labels)} levels in all" if len(analysis.labels) > len(workloads) else ""
    names = listed([_with_kind(name, kind) for name, kind in workloads.items()])
    what = f"the {'workload' if len(workloads) == 1 else 'workloads'} {names}{levels}"
    one = len({analysis.plan.against(name) for name in analysis.others}) <= 1  # bases have different kinds
    baseline = _with_kind(reference_words(analysis), kinds.get(analysis.baseline, "") if one else "")
    others = [_with_kind(display_name(name), kinds.get(name, "")) for name in analysis.others]
    version = document.versions.weighbridge or "(unknown version)"
    if others:
        compared = f"and compared {'it' if len(others) == 1 else 'them'} with {baseline}"
        yield f"with Weighbridge {version}, we measured {what} in {listed(others)}, {compared}."
    else:
        yield f"with Weighbridge {version}, we measured {what} in {baseline} alone, so nothing was compared."
    date = f", started on {document.date[:10]}" if document.date else ""
    question = f', with the question "{analysis.question}"' if analysis.question else ""
    yield f"the study was {analysis.study} (run {analysis.run_id}{date}){question}."
    yield from (f"the environment {line}." for line in left_out_lines(analysis))


def _with_kind(name: str, kind: str) -> str:
    """Return a name with its kind, unless the name contains it: ``tcp (iperf3)``, ``docker-bridge``."""
    return name if not kind or kind in name else f"{name} ({kind})"


def _explained(study: StoredStudy | None) -> Iterator[str]:
    """Yield how many variants of each explained environment were measured, and what was switched off in them."""
    if study is None:
        return
    variants = [arm.explains for arm in study.arms if arm.explains is not None]
    for environment in dict.fromkeys(each.environment for each in variants):
        off = [each.off for each in variants if each.environment == environment and each.off != (PLACEBO,)]
        mechanisms = [
            each
            for each in study.mechanisms
            if each.environment == environment and any(each.kind in kinds for kinds in off)
        ]
        if mechanisms:
            every = any(each.crossed for each in mechanisms)
            how = "in every combination" if every else "one at a time and all together"
            which = f"these mechanisms switched off {how}" if len(off) > 1 else "this mechanism switched off"
            yield (
                f"to find the causes of the cost of {display_name(environment)}, each round also measured "
                f"{plural(len(off), 'variant')} of it with {which}: {listed([each.title for each in mechanisms])}."
            )
        if any(each.off == (PLACEBO,) for each in variants if each.environment == environment):
            yield f"each round also measured {display_name(environment)} once more with nothing switched (placebo)."


def _machines(analysis: Analysis, document: RunResult) -> Iterator[str]:
    """Yield the machine of the run, and the other hosts of its study."""
    here = {key: value for scope, key, value, _ in analysis.context.facts if scope == HOST}
    study = analysis.context.study
    written = study.hosts if study is not None else {}
    kinds = {name: str(options.get("kind", "")) for name, options in written.items()}
    hosts = {name: document.hosts.get(name, {}) for name in dict.fromkeys((*kinds, *document.hosts))}
    others = {name: facts for name, facts in hosts.items() if facts.get(NODE)}
    what = _machine(here)
    if not what:
        yield "the run does not record its machine."
    elif others:
        yield f"Weighbridge itself ran on a machine with {what}."
    else:
        yield f"the machine had {what}."
    hypervisor = here.get("virtualisation", "")
    if hypervisor == "none seen":
        yield "no hypervisor was detected."
    elif hypervisor and hypervisor != "not known":
        yield f"it was a virtual machine (hypervisor: {'unnamed' if hypervisor == _UNNAMED else hypervisor})."
    near = [_with_kind(name, kinds.get(name, "")) for name in hosts if name not in others]
    if near and [kinds.get(name) for name in hosts] != ["local"]:  # the usual host is this machine
        yield f"the study used {'the host' if len(near) == 1 else 'the hosts'} {listed(near)} on this machine."
    for name, facts in others.items():
        own = f" with {own}" if (own := _machine(facts)) else ""
        yield f"the host {_with_kind(name, kinds.get(name, ''))} was another machine{own}."
    if analysis.polled:
        yield "idle CPUs were kept awake in every environment."


def _machine(facts: Mapping[str, str]) -> str:
    """Return a machine in words: CPU, memory, operating system, kernel; empty if none of them is known."""
    cpu, online = facts.get("CPU", ""), facts.get("CPUs online", "")
    kernel = " ".join(facts.get("kernel", "").split()[:2])
    parts = [
        f"{cpu}{f' (CPUs {online} online)' if online else ''}" if cpu else "",
        f"{facts['memory']} of memory" if facts.get("memory") else "",
        facts.get("operating system", ""),
        f"kernel {kernel}" if kernel else "",
    ]
    return listed([each for each in parts if each])


def _programs(document: RunResult) -> Iterator[str]:
    engines = [*dict.fromkeys(document.engine.values())]
    if engines:
        yield f"environments were made with {listed(engines)}."
    packages = {
        name: version
        for filesystem in document.versions.root_filesystems.values()
        for name, version in filesystem.measured.items()
    }
    if len(packages) > MOST_PACKAGES:
        yield f"the started programs came from {len(packages)} packages, whose versions the run records."
    elif packages:
        names = listed([f"{name} {version}" for name, version in packages.items()])
        yield f"the started programs came from {'the package' if len(packages) == 1 else 'the packages'} {names}."


def _limits(analysis: Analysis, stored: StoredStudy | None) -> Iterator[str]:
    """Yield the limits of all environments; nothing if the study sets none, or an older run does not record them."""
    extra = analysis.context.study.model_extra if analysis.context.study is not None else None
    resources = (extra or {}).get("resources")
    limits = resources if isinstance(resources, Mapping) else {}
    cpus, memory = _number(limits.get("cpus")), _number(limits.get("memory"))
    parts = [f"{whole(cpus)} {'CPU' if cpus == 1 else 'CPUs'}"] if cpus else []
    parts += [f"{whole(memory / 2**20)} MiB of memory"] if memory else []
    if parts:
        own = any(arm.resources is not None for arm in (stored.arms if stored is not None else ()))
        unless = ", unless the study gives an environment limits of its own" if own else ""
        yield f"every environment, the baseline included, was limited to {listed(parts)}{unless}."


def _number(value: object) -> float | None:
    """Return a number of a stored study; None for anything else, because a run can be a stranger's."""
    with suppress(OverflowError):
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    return None


# -- rounds, and when they ended -------------------------------------------------------------------


def _rounds(store: RunStore, analysis: Analysis) -> Iterator[str]:
    if not analysis.trials:
        yield nothing_sentence(analysis)
        return
    seed = store.info().get("seed")
    order = f"in random order{f' (seed {seed})' if seed is not None else ''}"
    again = f", and {display_name(analysis.baseline)} a second time as a control" if analysis.aa_arm else ""
    yield f"each round measured every environment once for each workload, {order}{again}."
    good = grouped((trial for trial in analysis.trials if trial.ok), lambda trial: trial.cell)
    seconds = sorted(median(trial.duration_s for trial in trials) for trials in good.values())
    if seconds:
        ends = list(dict.fromkeys(quantity(each, "s") for each in (seconds[0], seconds[-1])))
        depending = ", depending on the workload" if len(ends) > 1 else ""
        yield f"the median duration of a trial was {' to '.join(ends)}{depending}."
    if lengths := sorted(each.chosen_s for each in analysis.lengths):
        ends = list(dict.fromkeys(f"{each:.2g}" for each in (lengths[0], lengths[-1])))
        yield f"a pilot round, which does not count, set the work of each trial to {' to '.join(ends)} s."
    if analysis.time_shared:
        yield "slow workloads took part in fewer rounds than others, because the time was limited."


def _end(store: RunStore, analysis: Analysis) -> Iterator[str]:
    """Yield the rule for the number of rounds, its changes, and how the run ended."""
    plan, info = analysis.plan, store.info()
    rule = json.loads(info.get("repetitions", "{}"))
    fixed, target, most = rule.get("blocks"), rule.get("target"), rule.get("max")
    if target:
        limit_s = _number(rule.get("within")) or _number(rule.get("budget"))
        time = f" or {duration_text(limit_s)}" if limit_s else ""
        looks = analysis.looks.planned
        when = "after its last round" if looks == 1 else f"at one of {looks} planned interim looks"
        yield (
            f"the run was to end {when}, as soon as every interval was narrow enough (target {margin(target)}), and "
            f"at the latest after {whole(most)} rounds{time}."
        )
    elif fixed:
        yield f"the number of rounds was fixed in advance: {whole(fixed)}."
    for change in plan.changes:
        who = "a gate changed" if change in plan.changes_of_gates else "we changed"
        number = f"the number of rounds from {change.planned} to {change.blocks}"
        yield f"after {change.after} rounds, {who} {number}."
    if judged := dict.fromkeys(str(each.blocks) for each in store.gate_looks()):
        yield f"gates judged the run after {listed([*judged])} rounds, with an error budget of their own."
    if not plan.blocks:
        return
    rounds = plural(plan.blocks, "round")
    if plan.unfinished:
        yield f"the run is not finished: it was stopped, or is still going on, in round {plan.blocks}."
    elif target and not plan.changes and TIME_IS_OVER in info:
        yield f"it ended after {rounds}, when its time was over{_missed(analysis)}."
    elif target and not plan.changes and came_to_its_end(info):
        missed = _missed(analysis)
        enough = plan.blocks != most and not missed
        yield f"it ended after {rounds}{', when every interval was narrow enough' if enough else missed}."
    elif target or plan.blocks != plan.planned_blocks:
        yield f"it had {rounds}{_missed(analysis)}."


def _missed(analysis: Analysis) -> str:
    """Return how many intervals are wider than the target; empty if none is."""
    rows = _compared(analysis)
    missed = sum(any(isinstance(each, TargetMissed) for each in row.remarks) for row in rows)
    which = "its interval" if len(rows) == 1 else f"{missed} of {len(rows)} intervals"
    return f"; {which} did not reach the target" if missed else ""


def _compared(analysis: Analysis) -> list[Comparison]:
    """Return the comparisons of primary metrics with a cost, without the control."""
    rows = (row for report in analysis.headlines for row in report.comparisons)
    return [row for row in rows if row.cost is not None and not row.aa]


# -- costs, verdicts and the control ---------------------------------------------------------------


def _costs(analysis: Analysis, document: RunResult) -> Iterator[str]:
    if analysis.native_only or not analysis.trials:
        return
    rows = _compared(analysis)
    if not rows:
        yield "no cost can be computed, because no round has values of both sides."
        return
    rounds = sorted({row.blocks for row in rows})
    number = plural(rounds[0], "round") if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]} rounds"
    if analysis.few:
        fewer = f"with fewer than {MIN_BLOCKS_VERDICT}, Weighbridge gives values and no costs"
        yield f"the comparisons have {number}; {fewer}."
        return
    differences = sum(row.cost is not None and row.cost.scale == "difference" for row in rows)
    scale = {0: "ratio", len(rows): "difference"}.get(differences, "ratio or difference")
    yield (
        f"a cost compares the values of the same round ({number} for the primary metrics). It is the Hodges-Lehmann "
        f"estimate of their {scale}, with {_interval(rounds)}."
    )
    yield _level(analysis, document)
    families = [f"{name} ({count})" for name, count in document.families.items() if count]
    yield (
        f"a cost is significant if its interval excludes zero and its p-value is at most {level(ALPHA)} after Holm's "
        f"correction within its family of comparisons; the families are {listed(families)}. Costs in resource use, "
        "and costs of a disturbed run or of too few rounds, must also exceed the noise floor."
    )
    if analysis.equivalence is not None:
        yield (
            f"a cost is within the margin if two one-sided tests at {level(ALPHA * document.error_share)} show that "
            f"it lies within {margin(analysis.equivalence)}."
        )


def _interval(rounds: Sequence[int]) -> str:
    """Return the kind of interval for these numbers of rounds."""
    exact, by_t = "the exact interval of the signed-rank test", "Student's t interval (exploratory)"
    if rounds[0] >= MIN_BLOCKS_SIGNED_RANK:
        return exact
    return (
        by_t if rounds[-1] < MIN_BLOCKS_SIGNED_RANK else f"{exact}, or {by_t} below {MIN_BLOCKS_SIGNED_RANK} rounds"
    )


def _level(analysis: Analysis, document: RunResult) -> str:
    """Return the level of the intervals, and why it is not 95%."""
    looks, shown = analysis.looks, level(analysis.confidence)
    computed = level(1 - ALPHA * document.error_share)
    reasons = [f"there are {looks.planned} planned interim looks"] if looks.planned > 1 else []
    if looks.further:
        times = "once" if looks.further == 1 else f"{looks.further} times"
        reasons.append(f"the number of rounds was changed {times} after results could be seen")
    if looks.interim:
        reasons.append("a run that has not reached its planned end could have been examined after any round")
    if not reasons:
        return f"the level of the intervals is {shown}."
    how = f"is {shown} for all looks together, so each is computed at {computed}"
    return f"the level of the intervals {how if shown != computed else f'is {shown}'}, because {listed(reasons)}."


def _control(analysis: Analysis, document: RunResult) -> Iterator[str]:
    trust, baseline = analysis.trust, display_name(analysis.baseline)
    if not analysis.trials:
        return
    if trust.reason is TrustReason.NO_CONTROL:
        yield "the study had no control, so the noise of the machine is not known."
    elif trust.reason is TrustReason.FEW_BLOCKS:
        yield f"the control had fewer than {MIN_BLOCKS_VERDICT} rounds, so it shows nothing."
    elif trust.reason is TrustReason.SHIFTED:
        where = listed([metric_phrase(each) for each in trust.shifted])
        every = any(each.headline for each in trust.shifted)
        effect = "no cost of this run" if every else "no cost in a metric that is not primary"
        yield (
            f"the control failed: two copies of {baseline} differed significantly in {where}, although they are "
            f"identical. Therefore {effect} is called significant or equivalent."
        )
    else:
        yield (
            f"the control passed: two copies of {baseline} did not differ significantly at "
            f"{level(DISTRUST * document.control_error_share)} after Holm's correction{_noise(analysis)}."
        )
    yield unchecked_sentence(trust)
    if analysis.disturbance.heavy:
        yield f"{disturbance_words(analysis.disturbance, baseline)}."


def _noise(analysis: Analysis) -> str:
    """Return the noise floor as another sentence, with the largest one if there are several; empty if unknown."""
    trust = analysis.trust
    if trust.noise_floor is None or trust.largest_noise is None or trust.largest_noise_in is None:
        return ""
    median_, largest = share_size(trust.noise_floor), share_size(trust.largest_noise)
    begin = f". The noise floor (the largest cost that the interval of the control allows) was {median_}"
    if median_ == largest:
        return begin
    where = metric_phrase(trust.largest_noise_in)
    return f"{begin} as the median of the primary metrics, and {largest} at most ({where})"


# -- trials, and reservations ----------------------------------------------------------------------


def _trials(analysis: Analysis) -> Iterator[str]:
    trials = analysis.trials
    if not trials:
        return
    total = f"{len(trials):,} trials"
    failed = Counter(display_name(trial.environment) for trial in analysis.failed)
    if failed:
        where = ", ".join(f"{name} {count}" for name, count in failed.items())
        yield f"of {total}, {failed.total():,} failed ({where}) and gave no value."
    elif not any(trial.broke for trial in trials):
        yield f"all {total} succeeded." if len(trials) > 1 else "the only trial succeeded."
    if broke := sum(trial.broke for trial in trials):
        yield f"of {total}, {broke} ended because the load exceeded the server's capacity, which counts as a result."
    if again := sum(trial.attempt > 0 for trial in trials):
        yield f"{plural(again, 'trial')} repeated rounds in which a trial had failed."
    yield "no value was excluded as an outlier."


def _reservations(analysis: Analysis) -> Iterator[str]:
    if len(analysis.sessions.sessions) > 1:
        yield f"the run was measured in {len(analysis.sessions.sessions)} sessions."
    yield from (f"Weighbridge notes: {remark_text(each).rstrip('.')}." for each in analysis.notices)
    saturated = [
        trial.environment
        for trial in analysis.trials
        if any(flag.code is FlagCode.GENERATOR_SATURATED for flag in trial.flags)
    ]
    if saturated:
        where = listed([display_name(name) for name in dict.fromkeys(saturated)])
        yield f"the load generator limited trials in {where}, where costs of the server can be hidden."
    others = [each for each in analysis.confounders if not isinstance(each, Extended | Unfinished)]
    if texts := remark_texts(others):
        yield f"Weighbridge also recorded: {'; '.join(each.rstrip('.') for each in texts)}."
