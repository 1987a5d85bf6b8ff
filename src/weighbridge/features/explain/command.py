"""`weighbridge explain`: find the cause of a cost in a run."""

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.explanation import second_pass
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.cli import approval
from weighbridge.cli.files import report_study
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import out, write_new
from weighbridge.cli.run import measured, new_directory
from weighbridge.cli.runs import run_directory
from weighbridge.cli.timing import print_timing, timing_since_start
from weighbridge.features.explain.options import ExplainOptions
from weighbridge.features.explain.study import why_study
from weighbridge.model.level import CLIENT
from weighbridge.model.spelling import nearest
from weighbridge.report.text.environments import display_name, names_of, use_display_names
from weighbridge.report.text.metric_names import metric_phrase
from weighbridge.report.text.verdicts import cost_text
from weighbridge.runner import living, preflight
from weighbridge.secret_values import expect
from weighbridge.store.run import RunStore
from weighbridge.study import loader
from weighbridge.study.explained import unexplained
from weighbridge.study.secret_keys import without_secrets
from weighbridge.study.source import Origin, OriginKind, parse


def explain(options: ExplainOptions) -> None:
    """Make a study that explains the largest cost of a run, and run or save it."""
    timing = timing_since_start()
    with RunStore(run_directory(options.run)) as store:
        store.require_changeable()  # its programs and folders were replaced by usual names
        analysis, written, digests = analyse(store), store.info().get("study_text", ""), store.secrets()
        if digests:
            expect(digests, store.identity)
    if analysis.plan.pairs:
        fail("this run compares two versions: 'explain' needs a run that compares environments", WRONG_COMMAND_LINE)
    with use_display_names(names_of(analysis)):
        report, row = _chosen(analysis, options.environment, options.workload)
        crossed = _to_cross(analysis, report, row)
    source = without_secrets(parse(written, str(options.run)), every=digests is None)
    client = report.level.value_of(CLIENT) or ""
    text = why_study(
        source, analysis.baseline, row.environment, report.workload, crossed, client=client, trace=options.trace,
        placebo=options.placebo,
    )  # fmt: skip
    study = preflight.on_this_kernel(loader.check(parse(text, f"why {row.environment}")))
    if unexplained(study):
        reasons = "; ".join(f"{each.title}: {each.refused}" for each in study.mechanisms if each.refused)
        why = f": {reasons}" if reasons else ", because Weighbridge knows none for it"
        fail(f"no mechanism of {row.environment} can be switched off{why}", WRONG_COMMAND_LINE)
    if options.rounds is not None:
        study = loader.with_blocks(study, options.rounds)
    if options.save is not None:
        write_new(options.save, study.text)
        report_study(options.save)
        return
    directory = options.directory or new_directory(study)
    origin = Origin(OriginKind.RUN, str(options.run))
    needs_yes = approval.confirm(origin, study, directory, yes=options.yes, quick_test=options.quick_test)
    living.require_alone(allow_concurrent=options.allow_concurrent)
    measured(
        study, directory, yes=options.yes and needs_yes, env=options.env, timing=timing,
        concurrent=options.allow_concurrent,
    )  # fmt: skip
    if options.timing:
        print_timing(timing)


def _to_cross(analysis: Analysis, report: MetricReport, row: Comparison) -> tuple[str, ...]:
    """Return the mechanisms to switch in every combination; empty if the run does not explain the cost yet."""
    explained = {(each.environment, each.report.cell): each for each in analysis.explanations}
    if (explanation := explained.get((row.environment, report.cell))) is None:
        return ()
    if not (kinds := second_pass(explanation)):
        few = "fewer than two of its mechanisms have a significant cost"
        done = "its mechanisms were switched in every combination" if explanation.crossed else few
        rows = [*(each.row for each in explanation.mechanisms), *(each.row for each in explanation.pairs)]
        undecided = sum(each is not None and not each.decided for each in rows)
        more = f"More rounds might decide the {undecided} undecided costs"
        left = more if undecided else "Nothing is left to explain"
        fail(f"this run already explains {display_name(row.environment)}, and {done}. {left}", 1)
    titles = {each.mechanism.kind: each.mechanism.title for each in explanation.mechanisms}
    out().print(f"in every combination: {', '.join(titles[kind] for kind in kinds)}", markup=False)
    return kinds


def _chosen(analysis: Analysis, environment: str | None, workload: str | None) -> tuple[MetricReport, Comparison]:
    """Return the cost to explain: the largest significant cost of the chosen environment and workload."""
    if environment is not None and environment not in analysis.others:
        hint = nearest(environment, analysis.others) or f"; it has: {', '.join(analysis.others)}"
        fail(f"--environment: the run has no environment '{environment}'{hint}", WRONG_COMMAND_LINE)
    workloads = dict.fromkeys(report.workload for report in analysis.headlines)
    if workload is not None and workload not in workloads:
        hint = nearest(workload, workloads) or f"; it has: {', '.join(workloads)}"
        fail(f"--workload: the run has no workload '{workload}'{hint}", WRONG_COMMAND_LINE)
    asked = [
        (report, row)
        for report in analysis.headlines
        for row in report.comparisons
        if not row.aa and environment in (None, row.environment) and workload in (None, report.workload)
    ]
    proven = sorted(
        (each for each in asked if each[1].verdict == "different" and each[1].cost is not None),
        key=lambda each: -(each[1].cost.penalty.estimate if each[1].cost is not None else 0.0),
    )
    if not proven:
        fail("the run has no significant cost to explain. Its report says what would decide the undecided costs", 1)
    report, row = proven[0]
    words = f"{display_name(row.environment)}: {metric_phrase(report)} {cost_text(row, report.unit)}"
    further = f" ({len(proven) - 1} more: --environment, --workload)" if len(proven) > 1 else ""
    out().print(f"explaining {words}{further}", markup=False)
    return report, row
