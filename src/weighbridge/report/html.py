"""The page of a run: one file that needs no network (see `weighbridge.report.page`)."""

import time
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.program_use import program_use
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.usage import usage
from weighbridge.report import charts
from weighbridge.report.page import FULL_PX, place, render, write_page
from weighbridge.report.sections.curves import curve_sections
from weighbridge.report.sections.matrix import matrix_section
from weighbridge.report.sections.metrics import ladders, sections, sweeps
from weighbridge.report.sections.outputs import processes
from weighbridge.report.sections.overtime import overtime_sections
from weighbridge.report.sections.paths import path_sections
from weighbridge.report.sections.trials import trial_groups
from weighbridge.report.text.answer import answer
from weighbridge.report.text.conditions import condition_lines, left_out_lines, session_lines
from weighbridge.report.text.curves import broke_sentences
from weighbridge.report.text.environments import displayed
from weighbridge.report.text.paths import INTRODUCTION
from weighbridge.report.text.remarks import CODES
from weighbridge.report.text.steps import LADDER_INTRODUCTION, ladder_sentences
from weighbridge.report.text.summary import (
    disagreements,
    exploratory_sentence,
    nothing_sentence,
    verdict_sentences,
)
from weighbridge.report.text.trial_flags import said_once
from weighbridge.report.text.trust import imprecise, trust_sentence
from weighbridge.store.run import RunStore

FOLDED_FROM = 9
"""Workloads and levels from which each is folded: the tables over the levels come first."""

THIS_MACHINE = "host"
"""Scope of the facts of this machine; those of a host of several have its name after it."""


def write_html(store: RunStore, path: Path, analysis: Analysis | None = None) -> Path:
    """Write the report of a run as one offline file and give its path; links to raw outputs are relative to it.

    `analysis` saves the time of making it again.

    Raises OSError where the file cannot be written.
    """
    page = _render(store, displayed(analysis or analyse(store)), path)
    write_page(page, path, store.directory)
    return path


def _render(store: RunStore, analysis: Analysis, path: Path) -> str:
    specs: dict[str, str] = {}
    used = usage(store, analysis)
    once, kinds = said_once(analysis.trials)
    folded = len(analysis.labels) >= FOLDED_FROM
    parts = list(sections(analysis, specs, used, program_use(store, analysis), kinds, folded=folded))
    steps = ladders(analysis, specs, kinds)
    curves = curve_sections(analysis, specs)
    watched = overtime_sections(store, analysis, specs)
    top = place(specs, charts.overview(analysis), static_px=FULL_PX)
    facts, groups = _facts(store), trial_groups(analysis, processes(store, path))
    return render(
        "report.html.j2",
        specs,
        analysis=analysis,
        answer=answer(analysis),
        nothing=nothing_sentence(analysis),
        matrix=matrix_section(analysis),
        path=path_sections(analysis),
        path_introduction=INTRODUCTION,
        top=top,
        colours=charts.colours(analysis),
        sentences=verdict_sentences(analysis),
        disagreements=disagreements(analysis),
        exploratory=exploratory_sentence(analysis),
        trust=trust_sentence(analysis),
        banner=_banner(analysis),
        once=once,
        sessions=session_lines(analysis),
        conditions=condition_lines(analysis),
        left_out=left_out_lines(analysis),
        remark_codes=CODES,
        sections=parts,
        folded=folded,
        curves=curves,
        overtime=watched,
        broke=[trial for trial in analysis.trials if trial.broke],
        breaks=broke_sentences(analysis),
        sweeps=sweeps(analysis),
        ladders=steps,
        ladder_introduction=LADDER_INTRODUCTION,
        steps=ladder_sentences(analysis),
        groups=groups,
        packed=any(group.packed for group in groups),
        hosts=_hosts(facts),
        facts={scope: each for scope, each in facts.items() if not scope.startswith(f"{THIS_MACHINE} ")},
        info=_info(store),
    )


def _banner(analysis: Analysis) -> str:
    """The class of the banner on trust: neutral where nothing is wrong, but the session sees too little."""
    if analysis.trust.trusted is False:
        return "banner untrusted"
    return "banner trusted" if analysis.trust.trusted and not imprecise(analysis) else "banner"


def _facts(store: RunStore) -> dict[str, list[tuple[str, str]]]:
    """Scope -> its facts, the latest value of each key."""
    scopes: dict[str, dict[str, str]] = {}
    for scope, key, value, _ in store.facts():
        scopes.setdefault(scope, {})[key] = value
    return {scope: list(facts.items()) for scope, facts in scopes.items()}


def _hosts(facts: dict[str, list[tuple[str, str]]]) -> list[tuple[str, list[str], bool]]:
    """Where there are several hosts: first their names, then each fact with its value on each, and if they differ."""
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
    """The run's own keys, without those that have a place of their own."""
    own = {"study", "question", "study_text", "created"}
    info = store.info()
    created = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(float(info.get("created", 0))))
    rest = [(key.replace("_", " "), value) for key, value in info.items() if key not in own]
    return [("created", created), *rest, ("study file", info.get("study_text", ""))]
