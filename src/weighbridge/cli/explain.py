"""`weighbridge explain`: find the cause of a cost in a run."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.help import OUTPUT, WHAT
from weighbridge.cli.options import (
    AllowConcurrentOption,
    EnvOption,
    QuickTestOption,
    RoundsOption,
    TraceOption,
    YesOption,
)
from weighbridge.cli.output import WRONG_COMMAND_LINE, examples, fail, out, write_new

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
        run: Path = typer.Argument(..., metavar="RUN", help="A run with costs to explain."),
        environment: str | None = typer.Option(
            None,
            "--environment",
            metavar="NAME",
            help="Explain this environment. Default: the environment with the largest significant cost.",
            rich_help_panel=WHAT,
        ),
        workload: str | None = typer.Option(
            None,
            "--workload",
            metavar="NAME",
            help="Explain its cost in this workload. Default: the workload with the largest cost.",
            rich_help_panel=WHAT,
        ),
        rounds: int | None = RoundsOption,
        trace: str | None = TraceOption,
        directory: Path | None = typer.Option(
            None, "--out", metavar="DIR", help="Directory of the new run. Default: a new one.", rich_help_panel=OUTPUT
        ),
        save: Path | None = typer.Option(
            None, "--save", metavar="FILE", help="Write the study file and run nothing.", rich_help_panel=OUTPUT
        ),
        env: list[str] = EnvOption,
        yes: bool = YesOption,
        allow_concurrent: bool = AllowConcurrentOption,
        quick_test: bool = QuickTestOption,
    ) -> None:
        """Find out what causes a cost, by switching off one mechanism at a time.

        In every round, Weighbridge measures the environment again: complete, without each single mechanism (seccomp,
        network, address translation, limits), and without all of them. If RUN already explains the cost, Weighbridge
        switches its costly mechanisms (at most four) in every combination to find interactions.
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
            why = f": {reasons}" if reasons else ", because Weighbridge knows none for it"
            fail(f"no mechanism of {row.environment} can be switched off{why}", WRONG_COMMAND_LINE)
        if rounds is not None:
            study = with_blocks(study, rounds)
        if save is not None:
            write_new(save, study.text)
            out().print(f"{save} written. Next: weighbridge plan {save}", markup=False, soft_wrap=True)
            return
        directory = directory or new_directory(study)
        origin = Origin(OriginKind.RUN, str(run))
        needs_yes = confirm(origin, study, directory, yes=yes, quick_test=quick_test)
        require_alone(beside_others=allow_concurrent)
        measured(study, directory, yes=yes and needs_yes, env=env)


def _to_cross(analysis: "Analysis", report: "MetricReport", row: "Comparison") -> tuple[str, ...]:
    """Return the mechanisms to switch in every combination; empty if the run does not explain the cost yet."""
    from weighbridge.analysis.explanation import second_pass
    from weighbridge.report.text.environments import display_name

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


def _chosen(analysis: "Analysis", environment: str | None, workload: str | None) -> "tuple[MetricReport, Comparison]":
    """Return the cost to explain: the largest significant cost of the chosen environment and workload."""
    from weighbridge.model.spelling import nearest
    from weighbridge.report.text.environments import display_name
    from weighbridge.report.text.metric_names import metric_phrase
    from weighbridge.report.text.verdicts import cost_text

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
        key=lambda each: -(each[1].cost.worsening.estimate if each[1].cost is not None else 0.0),
    )
    if not proven:
        fail("the run has no significant cost to explain. Its report says what would decide the undecided costs", 1)
    report, row = proven[0]
    words = f"{display_name(row.environment)}: {metric_phrase(report)} {cost_text(row, report.unit)}"
    further = f" ({len(proven) - 1} more: --environment, --workload)" if len(proven) > 1 else ""
    out().print(f"explaining {words}{further}", markup=False)
    return report, row
