"""`weighbridge explain`: a study of why one environment of a run costs what it does."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.output import (
    WRONG_COMMAND_LINE,
    BesideOthersOption,
    EnvOption,
    RehearsalOption,
    TraceOption,
    examples,
    fail,
    out,
    write_new,
)

if TYPE_CHECKING:
    from weighbridge.analysis.results import Analysis, Comparison, MetricReport


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog=examples(
            "weighbridge explain runs/first-look-20261127-101500",
            "weighbridge explain runs/first-look-20261127-101500 --environment bridge --workload redis-set",
            "weighbridge explain runs/first-look-20261127-101500 --save why.yaml",
            "weighbridge explain RUN --env API_TOKEN",
        )
    )
    def explain(
        run: Path = typer.Argument(..., metavar="RUN", help="A run whose costs are to be explained."),
        environment: str | None = typer.Option(
            None, "--environment", help="Explain this environment. Default: the one with the largest proven cost."
        ),
        workload: str | None = typer.Option(
            None, "--workload", help="Explain its cost in this workload. Default: where it is largest."
        ),
        blocks: int | None = typer.Option(
            None, "--blocks", min=1, max=1000, help="Run this many blocks instead of as many as the run's study."
        ),
        trace: str | None = TraceOption,
        directory: Path | None = typer.Option(None, "--out", help="The new run's directory. Default: a new one."),
        save: Path | None = typer.Option(None, "--save", help="Write the study file and run nothing."),
        env: list[str] = EnvOption,
        yes: bool = typer.Option(False, "--yes", "-y", help="Start without asking."),
        beside_others: bool = BesideOthersOption,
        rehearsal: bool = RehearsalOption,
    ) -> None:
        """Say why a cost that a run has proven is what it is: switch off one thing at a time that causes it.

        It measures the environment again, and in the same blocks without each of its mechanisms (the filter of system
        calls, its network, address translation, limits) and without all of them. Of a run that explains the cost
        already it switches those that cost something (at most four) in every combination, to say which of them depend
        on one another.
        """
        from weighbridge.analysis.analyse import analyse
        from weighbridge.cli.approval import confirm
        from weighbridge.cli.run import measured, new_directory
        from weighbridge.cli.runs import run_directory
        from weighbridge.model.study import CLIENT
        from weighbridge.report.text.environments import names_of, use_display_names
        from weighbridge.runner.living import require_alone
        from weighbridge.runner.preflight import on_this_kernel
        from weighbridge.secret_values import expect
        from weighbridge.store.run import RunStore
        from weighbridge.study.explained import why_study
        from weighbridge.study.loader import check, with_blocks
        from weighbridge.study.secret_keys import without_secrets
        from weighbridge.study.source import Origin, OriginKind, parse

        with RunStore(run_directory(run)) as store:
            analysis, written, digests = analyse(store), store.info().get("study_text", ""), store.secrets()
            if digests:
                expect(digests, store.identity)
        with use_display_names(names_of(analysis)):
            report, row = _chosen(analysis, environment, workload)
            crossed = _to_cross(analysis, report, row)
        source = without_secrets(parse(written, str(run)), every=digests is None)
        client = report.level.value_of(CLIENT) or ""
        text = why_study(
            source, analysis.baseline, row.environment, report.workload, crossed, client=client, trace=trace
        )
        study = on_this_kernel(check(parse(text, f"why {row.environment}")))
        if not any(arm.explains is not None for arm in study.arms):
            reasons = "; ".join(f"{each.title}: {each.refused}" for each in study.mechanisms if each.refused)
            why = f": {reasons}" if reasons else ": no mechanism is known of it"
            fail(f"nothing of {row.environment} can be switched off{why}", WRONG_COMMAND_LINE)
        if blocks is not None:
            study = with_blocks(study, blocks)
        if save is not None:
            write_new(save, study.text)
            out().print(f"{save} written. Next: weighbridge plan {save}", markup=False, soft_wrap=True)
            return
        directory = directory or new_directory(study)
        origin = Origin(OriginKind.RUN, str(run))
        needs_yes = confirm(origin, study, directory, yes=yes, rehearsal=rehearsal)
        require_alone(beside_others=beside_others)
        measured(study, directory, yes=yes and needs_yes, env=env)


def _to_cross(analysis: "Analysis", report: "MetricReport", row: "Comparison") -> tuple[str, ...]:
    """Return the mechanisms to switch in every combination; none where the run does not explain the cost yet."""
    from weighbridge.analysis.explanation import second_pass
    from weighbridge.report.text.environments import display_name

    place = (row.environment, report.workload, report.level)
    explained = {(each.environment, each.report.workload, each.report.level): each for each in analysis.explanations}
    if (explanation := explained.get(place)) is None:
        return ()
    if not (kinds := second_pass(explanation)):
        already = "fewer than two of its mechanisms show a cost"
        done = "its mechanisms were switched in every combination" if explanation.crossed else already
        rows = [*(each.row for each in explanation.mechanisms), *(each.row for each in explanation.pairs)]
        undecided = sum(each is not None and not each.decided for each in rows)
        left = f"more blocks may settle the {undecided} undecided ones" if undecided else "nothing is left to tell"
        fail(f"{display_name(row.environment)} is explained in this run, and {done}: {left}", 1)
    titles = {each.mechanism.kind: each.mechanism.title for each in explanation.mechanisms}
    out().print(f"in every combination: {', '.join(titles[kind] for kind in kinds)}", markup=False)
    return kinds


def _chosen(analysis: "Analysis", environment: str | None, workload: str | None) -> "tuple[MetricReport, Comparison]":
    """The cost to be explained: the largest proven one of those that are asked for."""
    from weighbridge.model.spelling import nearest
    from weighbridge.report.text.environments import display_name
    from weighbridge.report.text.metric_names import metric_phrase
    from weighbridge.report.text.verdicts import cost_text

    if environment is not None and environment not in analysis.others:
        hint = nearest(environment, analysis.others) or f"; it has: {', '.join(analysis.others)}"
        fail(f"--environment: the run compares no '{environment}'{hint}", WRONG_COMMAND_LINE)
    workloads = dict.fromkeys(report.workload for report in analysis.headlines)
    if workload is not None and workload not in workloads:
        hint = nearest(workload, workloads) or f"; it has: {', '.join(workloads)}"
        fail(f"--workload: the run has no '{workload}'{hint}", WRONG_COMMAND_LINE)
    asked = [
        (report, row)
        for report in analysis.headlines
        for row in report.comparisons
        if not row.aa and environment in (None, row.environment) and workload in (None, report.workload)
    ]
    proven = sorted(
        (each for each in asked if each[1].verdict == "different" and each[1].cost is not None),
        key=lambda each: -(each[1].cost.worsening.estimate if each[1].cost is not None else 0.0),
    )
    if not proven:
        fail("the run proves no such cost, so there is nothing to explain: its report says what would settle it", 1)
    report, row = proven[0]
    words = f"{display_name(row.environment)}: {metric_phrase(report)} {cost_text(row, report.unit)}"
    further = f" ({len(proven) - 1} more: --environment, --workload)" if len(proven) > 1 else ""
    out().print(f"explaining {words}{further}", markup=False)
    return report, row
