"""Judges whether costs became worse than in another run by more than a margin.

The change comes from `between`, and its interval includes the session allowance. It is judged for every workload's
first metric that both runs have. Anything that prevents the judgement of a cost in either run also prevents the
judgement of its change.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from weighbridge.analysis.limits import Finding, Reason, rule
from weighbridge.analysis.requirement import Requirement, Target
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.features.gate.between_runs import NoChange, cost_change, disturbed_alike, why_no_change
from weighbridge.features.gate.compared_run import ComparedRun, OtherQuestionError, require_one_question
from weighbridge.features.gate.gate_analysis import TestedFinding
from weighbridge.features.gate.gate_looks import Spending
from weighbridge.features.gate.sequential import margin_p_value
from weighbridge.model.measurement import scale_of
from weighbridge.statistics import Looks, verdicts
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

Runs = tuple[ComparedRun, ComparedRun]
"""The earlier run, and the run that is judged."""


def judge_changes(
    margin: Requirement, now: ComparedRun, against: ComparedRun, spending: Spending, looks: Looks
) -> tuple[TestedFinding, ...]:
    """Return the change of each headline cost from the run ``against`` to the run ``now``, judged by a margin.

    ``margin`` is in percent; ``looks`` is how often the runs were looked at, in addition to the looks of
    ``spending``. Raises OtherQuestionError if the runs have different baselines, or no such metric in common.
    """
    require_one_question(against, now)
    changes = tuple(_test_change(margin, sides, (against, now), spending, looks) for sides in _common(now, against))
    if not changes:
        names = f"'{against.name}' and '{now.name}'"
        raise OtherQuestionError(f"{names} share no primary metric that is a ratio: name another run")
    return changes


@dataclass(frozen=True, slots=True)
class _Sides:
    """One comparison in both runs; ``target`` belongs to the judged run."""

    target: Target
    report: MetricReport
    earlier: Comparison


def _common(now: ComparedRun, against: ComparedRun) -> Iterator[_Sides]:
    """Yield the headline comparisons of the earlier run that the judged run planned to measure too.

    A comparison without values in the judged run is not a reason to pass. A margin in percent only applies to ratios.
    """
    left_out = {each.environment for each in now.analysis.left_out}
    common = ({*now.analysis.environments} | left_out) - {now.analysis.baseline}
    reports = {each.metric_id: each for each in now.analysis.metrics}
    for before in (each for each in against.analysis.metrics if each.headline):
        if before.label not in now.analysis.labels or scale_of(before.metric, before.unit) == "difference":
            continue
        report = reports.get(before.metric_id)
        for earlier in (row for row in before.comparisons if not row.aa and row.environment in common):
            rows = report.comparisons if report is not None else ()
            row = next((each for each in rows if each.environment == earlier.environment), None)
            yield _Sides(Target(earlier.environment, before.label, before.metric, report, row), before, earlier)


def _test_change(margin: Requirement, sides: _Sides, runs: Runs, spending: Spending, looks: Looks) -> TestedFinding:
    """Test one change against the margin, with its p-value as if it had all of the error to spend."""
    target, earlier = sides.target, sides.earlier
    row, share = target.row, spending.share(target.arm)

    def undecided(reason: Reason) -> TestedFinding:
        return Finding(margin, target, "undecided", reason), None

    if row is None or row.cost is None or earlier.cost is None or target.report is None:
        return undecided("broke" if (row is not None and row.broke_instead) or earlier.broke_instead else "no-cost")
    reports, both = (sides.report, target.report), (earlier, row)
    if why_no_change(reports, both) is NoChange.UNIT:
        return undecided("other-unit")
    if "difference" in (row.cost.scale, earlier.cost.scale):
        return undecided("no-ratio")
    if min(row.blocks, earlier.blocks) < MIN_BLOCKS_VERDICT:
        return undecided("blocks")
    if share <= 0:
        return undecided("spent")
    changed_cost = cost_change(reports, both, runs, looks=looks, confidence=1 - verdicts.ALPHA * share)
    change = changed_cost.change
    interval = change.penalty_with_allowance
    in_runs = [(sides.report, side, run.analysis) for run, side in zip(runs, both, strict=True)]
    outcome, reason = rule(margin, interval, margin.bound, in_runs, in_noise=change.within_noise)
    if outcome == "exceeded" and not disturbed_alike(*runs, target.environment):
        outcome, reason = "undecided", "disturbed"
    p_value = margin_p_value(changed_cost.first, changed_cost.second, change, margin.bound, looks)
    finding = Finding(margin, target, outcome, reason, interval, "%", min(change.blocks), change.confidence)
    return finding, min(1.0, p_value / share)
