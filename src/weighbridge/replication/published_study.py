"""What a page says of a published study itself: its set-up beside a run's, and the figures that are left out."""

from collections.abc import Iterable, Mapping

from weighbridge.analysis.results import Analysis
from weighbridge.replication.proof import used
from weighbridge.replication.published import Compared, Published, Setup
from weighbridge.report.text.metric_names import metric_words
from weighbridge.store.run import RunStore


def left_out(study: Published) -> list[tuple[str, str]]:
    """What is left out: the tables with the figures' names, and why: the first reason that fits a figure."""
    found: dict[int, dict[str, dict[str, dict[str, None]]]] = {}
    for figure in study.figures:
        number = next((n for n, out in enumerate(study.left_out) if out.fits(figure)), None)
        if number is not None and not used(study, figure):
            metrics = found.setdefault(number, {}).setdefault(figure.table, {})
            metrics.setdefault(metric_words(figure.metric), {})[figure.statistic.replace("_", " ")] = None
    return [(_places(found[number]), study.left_out[number].why) for number in sorted(found)]


def _places(tables: Mapping[str, Mapping[str, Iterable[str]]]) -> str:
    """Tables with the names of their figures; those with the same figures together."""
    same: dict[str, list[str]] = {}
    for table, metrics in tables.items():
        names = ", ".join(f"{metric} ({', '.join(statistics)})" for metric, statistics in metrics.items())
        same.setdefault(names, []).append(table)
    return "; ".join(f"{', '.join(tables)}: {names}" for names, tables in same.items())


def better_words(study: Published, compared: Compared) -> str:
    """Whether more is better in a table: ``less is better``."""
    about = (compared.workload, compared.metric)
    higher = any(each.better == "higher" for each in study.figures if (each.workload, each.metric) == about)
    return "more is better" if higher is (compared.times > 0) else "less is better"


def comparison_words(study: Published, compared: Compared) -> str:
    """With what a table compares: ``ratio to native``, ``ratio of two environments``."""
    if compared.statistic == "ratio":
        return "ratio of two environments"
    return f"{'ratio to' if compared.scale == 'ratio' else 'difference from'} {compared.against or study.baseline}"


def variant(store: RunStore) -> str:
    """Which profile and link a run was made with, as its study's first line tells; empty where it does not."""
    info = store.info()
    first = info.get("study_text", "").partition("\n")[0]
    return first.removeprefix("# ") if first.startswith(f"# {info.get('study', '')}") else ""


def setup_rows(study: Published, store: RunStore, analysis: Analysis) -> list[tuple[str, str, str]]:
    """What was how in the published study and in this run: what, published, here."""
    options = {workload: options for workload, _, _, _, options in store.cells()}
    return [(each.what, each.published, _here(each, store, analysis, options)) for each in study.setup]


def _here(setup: Setup, store: RunStore, analysis: Analysis, options: dict[str, dict[str, object]]) -> str:
    if setup.said:
        return setup.said
    if setup.blocks:
        most = max((row.blocks for report in analysis.metrics for row in report.comparisons), default=0)
        return f"{most} {'block' if most == 1 else 'blocks'}, each environment once in every block, in random order"
    if setup.option:
        workload, option = setup.option.split(".")
        value = options.get(workload, {}).get(option)
        shown = f"{value:.12g}" if isinstance(value, int | float) else ""
        return f"{shown} {setup.unit}".strip() if shown else "not in this run"
    facts = [(name, value) for key in setup.facts for _, name, value, _ in store.facts() if name == key]
    several = len(setup.facts) > 1  # then a value alone does not say of what it is
    found = [f"{name} {value}" if several else value for name, value in facts]
    return "; ".join(dict.fromkeys(found)) or "not known"
