"""The page of a run: one file that needs no network (see `weighbridge.report.page`)."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.program_use import program_use
from weighbridge.analysis.results import EXTENDED_ERROR, Analysis
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.analysis.usage import usage
from weighbridge.report import charts
from weighbridge.report.charts.base import MarkStyle
from weighbridge.report.page import FULL_PX, ChartPlace, Page, PageCharts, write_page
from weighbridge.report.sections.curves import CurveSection, curve_sections
from weighbridge.report.sections.metrics import (
    ExplanationArticle,
    LadderArticle,
    LevelTable,
    WorkloadSection,
    explanation_articles,
    ladder_articles,
    level_tables,
    workload_sections,
)
from weighbridge.report.sections.overtime import UseSection, overtime_sections
from weighbridge.report.sections.top import MatrixSection, PathSection, matrix_section, path_sections
from weighbridge.report.sections.traces import TraceTable, trace_tables
from weighbridge.report.sections.trials import TrialGroup, processes, trial_groups
from weighbridge.report.text.answer import answer
from weighbridge.report.text.conditions import condition_lines, left_out_lines, session_lines
from weighbridge.report.text.curves import broke_sentences
from weighbridge.report.text.environments import display_name, names_of, use_display_names
from weighbridge.report.text.explanation import explanation_introduction
from weighbridge.report.text.matrix import WORDS
from weighbridge.report.text.paths import INTRODUCTION
from weighbridge.report.text.remarks import CODES
from weighbridge.report.text.steps import LADDER_INTRODUCTION, ladder_sentences
from weighbridge.report.text.summary import (
    disagreements,
    exploratory_sentence,
    nothing_sentence,
    verdict_sentences,
)
from weighbridge.report.text.trial_flags import common_flag_sentences
from weighbridge.report.text.trust import imprecise, trust_sentence
from weighbridge.store.reader import SECRETS
from weighbridge.store.run import RunStore

FOLDED_FROM = 9
"""Workloads and levels from which each is folded: the tables over the levels come first."""

THIS_MACHINE = "host"
"""The scope of facts about this machine; with several hosts, a host's name follows it."""


Facts = Mapping[str, Sequence[tuple[str, str]]]
"""Facts by their scope: each with its latest value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage(Page):
    """The page of a run."""

    template = "report.html.j2"
    analysis: Analysis
    styles: Mapping[str, MarkStyle]
    compared_styles: Mapping[str, MarkStyle]
    """Without the baseline and its A/A arm."""

    answer: str
    nothing: str
    matrix: MatrixSection
    path: Sequence[PathSection]
    path_introduction: str = INTRODUCTION
    trust: str
    banner: str
    exploratory: str
    disagreements: Sequence[str]
    left_out: Sequence[str]
    sessions: Sequence[str]
    once: Sequence[str]
    """Flags of so many trials that they are shown once."""
    conditions: Sequence[str]
    sentences: Sequence[tuple[str, str]]
    overview: ChartPlace
    extended_error: float = EXTENDED_ERROR
    undecided: str = WORDS["inconclusive"]
    facets: Mapping[str, Sequence[tuple[str, str]]]
    """The filters of the page: each value with its displayed name."""

    curves: Sequence[CurveSection]
    levels: Sequence[LevelTable]
    ladders: Sequence[LadderArticle]
    ladder_introduction: str = LADDER_INTRODUCTION
    steps: Sequence[tuple[str, str]]
    explanations: Sequence[ExplanationArticle]
    explanation_introduction: str
    traces: Sequence[TraceTable]
    workloads: Sequence[WorkloadSection]
    folded: bool
    overtime: Sequence[UseSection]

    broke: Sequence[TrialRow]
    breaks: Sequence[str]
    groups: Sequence[TrialGroup]
    hosts: Sequence[tuple[str, Sequence[str], bool]]
    facts: Facts
    info: Sequence[tuple[str, str]]
    remark_codes: Mapping[str, str]


def write_html(store: RunStore, path: Path, analysis: Analysis | None = None) -> Path:
    """Write the report of a run as one offline file and return its path; links to raw outputs are relative to it.

    `analysis` avoids computing it again. Raises OSError if the file cannot be written.
    """
    analysis = analysis or analyse(store)
    with use_display_names(names_of(analysis)):
        return write_page(_run_page(store, analysis, path), path, store.directory)


def _run_page(store: RunStore, analysis: Analysis, path: Path) -> RunPage:
    page, scheme = PageCharts(), charts.styles(analysis)
    flag_sentences, kinds = common_flag_sentences(analysis.trials)
    folded = len(analysis.labels) >= FOLDED_FROM
    used, programs = usage(store, analysis), program_use(store, analysis)
    facts, groups = _facts(store), trial_groups(analysis, processes(store, path))
    return RunPage(
        title=analysis.study,
        charts=page,
        packed=any(group.packed for group in groups),
        analysis=analysis,
        styles={display_name(name): style for name, style in scheme.items()},
        compared_styles={display_name(name): style for name, style in scheme.items() if name in analysis.others},
        answer=answer(analysis),
        nothing=nothing_sentence(analysis),
        matrix=matrix_section(analysis),
        path=path_sections(analysis),
        trust=trust_sentence(analysis),
        banner=_banner(analysis),
        exploratory=exploratory_sentence(analysis),
        disagreements=disagreements(analysis),
        left_out=left_out_lines(analysis),
        sessions=session_lines(analysis),
        once=flag_sentences,
        conditions=condition_lines(analysis),
        sentences=verdict_sentences(analysis),
        overview=page.place(charts.overview(analysis), static_px=FULL_PX),
        facets=_facets(analysis),
        curves=curve_sections(analysis, page),
        levels=level_tables(analysis),
        ladders=ladder_articles(analysis, page, kinds),
        steps=ladder_sentences(analysis),
        explanations=explanation_articles(analysis, page),
        explanation_introduction=explanation_introduction(analysis),
        traces=trace_tables(store) if analysis.explanations else (),
        workloads=list(workload_sections(analysis, page, used, programs, kinds, folded=folded)),
        folded=folded,
        overtime=overtime_sections(store, analysis, page),
        broke=[trial for trial in analysis.trials if trial.broke],
        breaks=broke_sentences(analysis),
        groups=groups,
        hosts=_hosts(facts),
        facts={scope: each for scope, each in facts.items() if not scope.startswith(f"{THIS_MACHINE} ")},
        info=_info(store),
        remark_codes=CODES,
    )


def _facets(analysis: Analysis) -> dict[str, list[tuple[str, str]]]:
    """Return the filters of the page, without those that have a single value."""
    rows = [row for report in analysis.metrics for row in report.comparisons]
    compared = {row.environment for row in rows}
    verdicts = dict.fromkeys(row.shown_as for row in rows if not row.aa)
    facets = {
        "environment": [(name, display_name(name)) for name in analysis.environments if name in compared],
        "workload": [(name, name) for name in dict.fromkeys(report.workload for report in analysis.metrics)],
        "verdict": [(verdict, WORDS.get(verdict, verdict)) for verdict in verdicts],
    }
    return {facet: options for facet, options in facets.items() if len(options) > 1}


def _banner(analysis: Analysis) -> str:
    """Return the class of the banner on trust: neutral if nothing is wrong but small costs stay invisible."""
    if analysis.trust.trusted is False:
        return "banner untrusted"
    return "banner trusted" if analysis.trust.trusted and not imprecise(analysis) else "banner"


def _facts(store: RunStore) -> Facts:
    """Scope -> its facts, the latest value of each key."""
    scopes: dict[str, dict[str, str]] = {}
    for scope, key, value, _ in store.facts():
        scopes.setdefault(scope, {})[key] = value
    return {scope: list(facts.items()) for scope, facts in scopes.items()}


def _hosts(facts: Facts) -> list[tuple[str, list[str], bool]]:
    """Return the names of several hosts, then each fact with its value on each host, and whether they differ."""
    start = f"{THIS_MACHINE} "
    scopes = {scope.removeprefix(start): dict(each) for scope, each in facts.items() if scope.startswith(start)}
    scopes.pop("differences", None)
    if not scopes:
        return []
    rows: list[tuple[str, list[str], bool]] = [("", list(scopes), False)]
    for key in dict.fromkeys(key for each in scopes.values() for key in each):
        values = [each.get(key, "–") for each in scopes.values()]
        rows.append((key, values, len(set(values)) > 1))
    return rows


def _info(store: RunStore) -> list[tuple[str, str]]:
    """Return the run's own keys, without those that have a place of their own."""
    own = {"study", "question", "study_text", "created", SECRETS}
    info = store.info()
    created = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(float(info.get("created", 0))))
    rest = [(key.replace("_", " "), value) for key, value in info.items() if key not in own]
    secrets = [("values not stored", ", ".join(names))] if (names := store.secrets()) else []
    return [("created", created), *rest, *secrets, ("study file", store.shown_study_text())]
