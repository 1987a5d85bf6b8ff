"""`weighbridge report`."""

from collections.abc import Sequence
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.limits import Finding, failed_workloads, judge
from weighbridge.analysis.requirement import LIMIT, parse_requirement, reports_named
from weighbridge.analysis.results import Analysis, MetricReport
from weighbridge.cli.commands.results import ReportOptions
from weighbridge.cli.declared import later
from weighbridge.cli.feature import features
from weighbridge.cli.limits import checked
from weighbridge.cli.messages import fail, one_format
from weighbridge.cli.output import out, print_json
from weighbridge.cli.runs import run_directory
from weighbridge.errors import LimitExceeded, LimitUndecided, TrialsFailed, WeighbridgeError
from weighbridge.model.secret import variables_of
from weighbridge.model.text import printable
from weighbridge.store.run import RunStore
from weighbridge.store.versions import can_continue

PREFIX, TABLE = "--fail-if ", "--table "

# each format imports only its own modules
report_json = later("weighbridge.report.export.json:report_json")
limits_json = later("weighbridge.report.export.limits:limits_json")
run_markdown = later("weighbridge.report.documents:run_markdown")
run_latex = later("weighbridge.report.documents:run_latex")
run_svg = later("weighbridge.report.documents:run_svg")
run_methods = later("weighbridge.report.documents:run_methods")
run_bib = later("weighbridge.report.bib:run_bib")
openmetrics = later("weighbridge.report.export.openmetrics:openmetrics")
action_benchmark_json = later("weighbridge.report.export.action_benchmark:action_benchmark_json")
write_html = later("weighbridge.report.html:write_html")
print_report = later("weighbridge.report.terminal:print_report")
print_document = later("weighbridge.report.render_terminal:print_document")
limit_sentence = later("weighbridge.report.text.limits:limit_sentence")


def report(options: ReportOptions) -> None:
    """Print a run in the chosen format, and judge the limits."""
    other_format = one_format({
        "json": options.as_json, "markdown": options.as_markdown, "latex": options.as_latex and not options.methods,
        "svg": options.as_svg, "methods": options.methods, "bib": options.bib,
        "openmetrics": options.as_openmetrics, "github-action-benchmark": options.as_action_benchmark,
    })  # fmt: skip
    limits = checked(lambda: [parse_requirement(each, LIMIT) for each in options.fail_if], PREFIX)
    run = run_directory(options.run)
    with RunStore(run) as store:
        analysis = analyse(store)
        findings = checked(lambda: judge(limits, analysis), PREFIX)  # before anything is written
        shown = checked(lambda: [each for name in options.tables for each in reports_named(name, analysis)], TABLE)
        if options.as_json:
            print_json(report_json(store, analysis, limits_json(analysis, findings)))
            _answer(findings, analysis)
            return
        if other_format is not None:
            print(_printed(other_format, store, analysis, as_latex=options.as_latex), end="", flush=True)
            _answer(findings, analysis)
            return
        _show(store, analysis, run, options.page, shown, everything=options.everything)
    for finding in findings:
        if finding.outcome == "kept":
            out().print(printable(limit_sentence(finding, analysis)), markup=False, soft_wrap=True)
    _answer(findings, analysis)


def _printed(form: str, store: RunStore, analysis: Analysis, *, as_latex: bool) -> str:
    """Return a run in one of the formats that are text."""
    with_store = {"openmetrics": openmetrics, "github-action-benchmark": action_benchmark_json, "bib": run_bib}
    text: str
    if form == "methods":
        text = run_methods(store, analysis, as_latex=as_latex)
    elif form in with_store:
        text = with_store[form](store, analysis)
    else:
        text = {"markdown": run_markdown, "latex": run_latex, "svg": run_svg}[form](analysis)
    return text


def _show(
    store: RunStore,
    analysis: Analysis,
    run: Path,
    page: Path | None,
    tables: Sequence[MetricReport],
    *,
    everything: bool,
) -> None:
    """Write the pages of a run, and print its verdicts. Next to a kept file, no page is written."""
    at = page or (None if store.is_kept_file else run / "report.html")
    pages, refused, documents = ["page: add --html FILE"] if at is None else [f"report: {at}"], "", []
    try:
        if at is not None:
            write_html(store, at, analysis)
        for further in (each for feature in features() for each in feature.pages):
            if page is None and (run / further.file).exists():
                document, path = later(further.writes)(store, analysis)
                documents.append(document)
                pages.append(f"{further.title}: {path}")
    except PermissionError as error:
        refused = f"{error.filename}: {error.strerror}. No page was written: name another file with --html FILE"
        pages = []
    # on a terminal, Weighbridge asks before it runs a study that is not bundled
    yes = not out().is_terminal
    print_report(
        analysis, out(), everything=everything, tables=tables, run=str(run), pages=pages, yes=yes,
        variables=variables_of(store.secrets() or ()), lasting=can_continue(store),
    )  # fmt: skip
    for document in documents if everything else ():
        print_document(document, out(), full=True, details=False)
    if refused:
        fail(refused, WeighbridgeError.exit_code)


def _answer(findings: Sequence[Finding], analysis: Analysis) -> None:
    """Raise the result of the limits with a line for each that is not kept, unless all are kept."""
    lines = [printable(limit_sentence(each, analysis)) for each in findings if each.outcome != "kept"]
    if any(each.outcome == "exceeded" for each in findings):
        raise LimitExceeded("\n".join(lines))
    if failed := failed_workloads(findings, analysis):
        lines.append(f"no round of {', '.join(failed)} is complete, because trials failed")
        raise TrialsFailed("\n".join(lines))
    if lines:
        raise LimitUndecided("\n".join(lines))
