"""`weighbridge replicate`."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.results import Analysis
from weighbridge.cli import approval
from weighbridge.cli.feature import Watch, watched, watches_of
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail, one_format
from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.progress import show
from weighbridge.cli.run import new_directory
from weighbridge.cli.runs import continuable, run_directory
from weighbridge.cli.timing import print_timing, timing_since_start
from weighbridge.features.replication import PAGE
from weighbridge.features.replication.claims import claims_csv, claims_document, claims_latex
from weighbridge.features.replication.comparison import Offer, Replication, replication
from weighbridge.features.replication.document import replication_json
from weighbridge.features.replication.options import ReplicateOptions
from weighbridge.features.replication.published import available, published
from weighbridge.features.replication.report import replication_document
from weighbridge.features.replication.words import print_replication_screen
from weighbridge.model.timing import Timing
from weighbridge.report import html
from weighbridge.report.document import Document
from weighbridge.report.render_page import write_document
from weighbridge.report.render_terminal import print_document
from weighbridge.report.text.next_step import continuing
from weighbridge.runner import living
from weighbridge.runner import run as running
from weighbridge.runner.signals import interruptible
from weighbridge.store.extensions import unfinished
from weighbridge.store.run import RunStore
from weighbridge.store.versions import can_continue
from weighbridge.study.profiles import load_each
from weighbridge.study.source import bundled_study


def replicate(options: ReplicateOptions) -> None:
    """Run a published study, or show an earlier run of it, next to the published figures."""
    form = one_format(
        {"json": options.as_json, "claims": options.claims, "latex": options.as_latex, "csv": options.as_csv}
    )
    if options.report is not None:
        others = (options.study, options.profile, options.link, options.directory, *astuple(options.watching))
        if any(each is not None for each in others):
            formats = "--json, --claims, --latex or --csv"
            fail(f"--report can only be combined with {formats}: remove the other options", WRONG_COMMAND_LINE)
        with RunStore(run_directory(options.report)) as store:
            _show(store, form)
        return
    if options.study is None and options.directory is None:
        message = f"name a study ({', '.join(available())}), --out DIR to continue a run, or --report RUN"
        fail(message, WRONG_COMMAND_LINE)
    if options.study is None and (options.profile, options.link) != (None, None):
        fail("--profile and --link need a study, because a continued run already has one", WRONG_COMMAND_LINE)
    timing, watches = timing_since_start(), watches_of(options.watching)
    living.require_alone(allow_concurrent=options.allow_concurrent)
    _run(options, form, watches, timing)
    if options.timing:
        print_timing(timing)


def _run(options: ReplicateOptions, form: str | None, watches: Sequence[Watch], timing: Timing) -> None:
    loaded, directory, yes = None, options.directory, options.yes
    if options.study is not None:
        loaded, origin = approval.load_named(options.study, options.profile, options.link, yes=yes)
        published(loaded.file.study)  # fails before anything runs
        directory = directory or new_directory(loaded)
        needs_yes = approval.confirm(origin, loaded, directory, yes=yes, quick_test=options.quick_test)
    else:
        assert directory is not None
        _require_published(directory)
        needs_yes = approval.confirm_continued(directory, yes=yes)
    with (
        interruptible(),
        show(directory) as progress,
        watched(watches, progress, loaded, directory) as listeners,
        continuable(
            directory,
            *continuing("replicate", str(directory), yes=yes and needs_yes, concurrent=options.allow_concurrent),
        ),
    ):

        def after(store: RunStore) -> None:
            progress.close()
            if store.finished():
                _show(store, form, ran=True)

        running.run_study(loaded, directory, listeners, after, timing=timing)


def _require_published(directory: Path) -> None:
    with RunStore(directory) as store:
        published(store.info().get("study", ""))


def _show(store: RunStore, form: str | None, *, ran: bool = False) -> None:
    """Write both pages of a run and print it in a format; ``ran`` is True if it has just run."""
    analysis = analyse(store)
    result = _compared(analysis)
    pages = [*_pages(store, analysis, result)]
    if form is None:
        ended = ran and unfinished(store.info())
        print_replication_screen(
            result, out(), str(store.directory), pages, yes=ran, ended=ended, lasting=can_continue(store)
        )  # fmt: skip
        return
    if form == "json":
        print_json(replication_json(result))
    elif form == "claims":
        print_document(claims_document(result), out(), full=True)
    else:
        print((claims_latex if form == "latex" else claims_csv)(result), end="", flush=True)
    for line in pages:
        err().print(line, markup=False)


def _pages(store: RunStore, analysis: Analysis, result: Replication) -> Iterator[str]:
    """Write both pages into the run directory, and yield a line with the path of each. A kept file has none."""
    if not store.is_kept_file:
        yield f"report: {html.write_html(store, store.directory / 'report.html', analysis)}"
        yield f"published and measured: {_write(store, result)[1]}"


def further_page(store: RunStore, analysis: Analysis) -> tuple[Document, Path]:
    """Write the page that compares a run with its published study. Raises StudyError if nothing was published."""
    return _write(store, _compared(analysis))


def _compared(analysis: Analysis) -> Replication:
    return replication(analysis, published(analysis.study), _offers(analysis.study))


def _write(store: RunStore, result: Replication) -> tuple[Document, Path]:
    document = replication_document(result, store)
    return document, write_document(document, store.directory / PAGE, store.directory)


def _offers(study: str) -> list[Offer]:
    """Return the workloads and environments of each profile of the bundled study."""
    return [
        Offer(name, frozenset(cell.workload for cell in each.cells), frozenset(arm.name for arm in each.arms))
        for name, each in load_each(bundled_study(study))
    ]
