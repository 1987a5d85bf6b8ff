"""`weighbridge replicate`."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.complete import complete_study
from weighbridge.cli.help import OUTPUT, WHAT
from weighbridge.cli.metrics import Address, MetricsOption, address, watched
from weighbridge.cli.options import AllowConcurrentOption, JsonFlag, ProfileOption, QuickTestOption, YesOption
from weighbridge.cli.output import WRONG_COMMAND_LINE, err, examples, fail, out, print_json

if TYPE_CHECKING:
    from weighbridge.analysis.results import Analysis
    from weighbridge.replication.comparison import Offer, Replication
    from weighbridge.store.run import RunStore

PAGE = "replication.html"
LinkOption = typer.Option(
    None, "--link", metavar="RATE", help="Rate of every testbed cable, for example 100mbit.", rich_help_panel=WHAT
)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog=examples(
            "weighbridge replicate docker-networks --profile quick",
            "weighbridge replicate --out RUN",
            "weighbridge replicate --report RUN",
        )
    )
    def replicate(
        study: str | None = typer.Argument(
            None,
            help="A bundled study with published figures. Not needed with --out or --report.",
            autocompletion=complete_study,
        ),
        profile: str | None = ProfileOption,
        link: str | None = LinkOption,
        directory: Path | None = typer.Option(
            None,
            "--out",
            metavar="DIR",
            help="A new run directory, or the directory of an interrupted run to continue.",
            rich_help_panel=OUTPUT,
        ),
        report: Path | None = typer.Option(
            None,
            "--report",
            metavar="RUN",
            help="Rewrite the pages of this run, and run nothing.",
            rich_help_panel=OUTPUT,
        ),
        metrics: str | None = MetricsOption,
        yes: bool = YesOption,
        allow_concurrent: bool = AllowConcurrentOption,
        quick_test: bool = QuickTestOption,
        as_json: bool = JsonFlag,
    ) -> None:
        """Run a published study on your machines, and compare the results with its published figures."""
        from weighbridge.cli.runs import run_directory
        from weighbridge.runner.living import require_alone
        from weighbridge.store.run import RunStore

        if report is not None:
            if (study, profile, link, directory, metrics) != (None,) * 5:
                fail("--report can only be combined with --json: remove the other options", WRONG_COMMAND_LINE)
            with RunStore(run_directory(report)) as store:
                _show(store, as_json=as_json)
            return
        if study is None and directory is None:
            from weighbridge.replication.published import available

            message = f"name a study ({', '.join(available())}), --out DIR to continue a run, or --report RUN"
            fail(message, WRONG_COMMAND_LINE)
        if study is None and (profile, link) != (None, None):
            fail("--profile and --link need a study, because a continued run already has one", WRONG_COMMAND_LINE)
        at = address(metrics)
        require_alone(beside_others=allow_concurrent)
        _run(study, profile, link, directory, at, yes=yes, as_json=as_json, quick_test=quick_test)


def _run(
    study: str | None, profile: str | None, link: str | None, directory: Path | None, at: Address | None, *,
    yes: bool, as_json: bool, quick_test: bool,
) -> None:  # fmt: skip
    from weighbridge.cli.approval import confirm, confirm_continued, load_named
    from weighbridge.cli.progress import show
    from weighbridge.cli.run import new_directory
    from weighbridge.cli.runs import continuable
    from weighbridge.replication.published import published
    from weighbridge.report.text.next_step import continuing
    from weighbridge.runner.run import run_study
    from weighbridge.runner.signals import interruptible

    loaded = None
    if study is not None:
        loaded, origin = load_named(study, profile, link, yes=yes)
        published(loaded.file.study)  # fails before anything runs
        directory = directory or new_directory(loaded)
        needs_yes = confirm(origin, loaded, directory, yes=yes, quick_test=quick_test)
    else:
        assert directory is not None
        _require_published(directory)
        needs_yes = confirm_continued(directory, yes=yes)
    with (
        interruptible(),
        show() as progress,
        watched(at, progress, loaded, directory) as listeners,
        continuable(directory, *continuing("replicate", str(directory), yes=yes and needs_yes)),
    ):

        def after(store: "RunStore") -> None:
            progress.close()
            if store.finished():
                _show(store, as_json=as_json, ran=True)

        run_study(loaded, directory, listeners, after)


def _require_published(directory: Path) -> None:
    from weighbridge.replication.published import published
    from weighbridge.store.run import RunStore

    with RunStore(directory) as store:
        published(store.info().get("study", ""))


def _show(store: "RunStore", *, as_json: bool, ran: bool = False) -> None:
    """Write both pages of a run and print its tables; ``ran`` is True if it has just run."""
    from weighbridge.analysis.analyse import analyse
    from weighbridge.replication.document import replication_json
    from weighbridge.replication.words import print_replication_screen
    from weighbridge.report.html import write_html
    from weighbridge.store.extensions import unfinished

    analysis = analyse(store)
    page = write_html(store, store.directory / "report.html", analysis)
    result, comparison = write_beside(store, analysis)
    pages = [f"report: {page}", f"published and measured: {comparison}"]
    if as_json:
        print_json(replication_json(result))
        err().print("\n".join(pages), markup=False)
    else:
        ended = ran and unfinished(store.info())
        print_replication_screen(result, out(), str(store.directory), pages, yes=ran, ended=ended)


def write_beside(store: "RunStore", analysis: "Analysis") -> tuple["Replication", Path]:
    """Write the page that compares a run with its published study. Raises StudyError if nothing was published."""
    from weighbridge.replication.comparison import replication
    from weighbridge.replication.published import published
    from weighbridge.replication.report import replication_document
    from weighbridge.report.render_page import write_document

    result = replication(analysis, published(analysis.study), _offers(analysis.study))
    document = replication_document(result, store)
    return result, write_document(document, store.directory / PAGE, store.directory)


def _offers(study: str) -> "list[Offer]":
    """Return the workloads and environments of each profile of the bundled study."""
    from weighbridge.replication.comparison import Offer
    from weighbridge.study.profiles import load, profiles_of
    from weighbridge.study.source import bundled_study

    origin = bundled_study(study)
    studies = {name: load(origin, name) for name in profiles_of(origin)}
    return [
        Offer(name, frozenset(cell.workload for cell in each.cells), frozenset(arm.name for arm in each.arms))
        for name, each in studies.items()
    ]
