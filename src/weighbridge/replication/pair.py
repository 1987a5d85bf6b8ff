"""Two environments of a run against each other, neither of which is its baseline."""

from statistics import median

from weighbridge.analysis.comparisons import scale
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.statistics import compare, slow_run_rate, verdicts


def compare_pair(analysis: Analysis, report: MetricReport, environment: str, against: str) -> Comparison | None:
    """Compare two environments inside the blocks that both have; None where there is none.

    Like `weighbridge.analysis.comparisons.comparison`, with a verdict, but each pair alone: it is part of no family
    of the report, and nothing is corrected for how many there are.
    """
    sides: dict[str, dict[tuple[int, int], float]] = {against: {}, environment: {}}
    outcomes: dict[str, list[bool]] = {against: [], environment: []}
    for trial in analysis.trials_of.get(report.label, ()):
        if trial.environment in sides:
            outcomes[trial.environment].append(trial.ok)
            if report.metric in trial.values:
                sides[trial.environment][trial.block, trial.attempt] = trial.values[report.metric]
    first: dict[int, tuple[float, float]] = {}
    for block, attempt in sorted(sides[against].keys() & sides[environment].keys()):
        first.setdefault(block, (sides[against][block, attempt], sides[environment][block, attempt]))
    if not first:
        return None
    ours, theirs = [one for one, _ in first.values()], [other for _, other in first.values()]
    on = scale(report.metric, report.unit)
    cost = compare(ours, theirs, better=report.better, equivalence=analysis.equivalence, scale=on)
    p_value = verdicts.family_p_value((ours, theirs), cost, 1)
    aa = report.aa.cost if report.aa else None
    failing = any(verdicts.failing(each) for each in outcomes.values())
    return Comparison(
        environment=environment,
        aa=False,
        cost=cost,
        baseline_value=median(ours),
        value=median(theirs),
        slow=slow_run_rate(theirs, better=report.better) if min(theirs) >= 0 else None,
        adjusted_p=p_value,
        verdict=verdicts.verdict(cost, p_value, aa, never_equivalent=failing),
        remarks=(),
    )
