"""The words of a replication for readers: sentences, cells of tables, differences in setup, and the terminal."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from weighbridge.analysis.results import Analysis
from weighbridge.features.replication.comparison import (
    DIRECTIONS,
    OUTCOMES,
    SIGN_ONLY,
    SIGNIFICANT,
    ComparedRow,
    ComparedTable,
    PairRow,
    Pairs,
    Replication,
    SpreadRow,
    Spreads,
)
from weighbridge.features.replication.proof import PublishedRow
from weighbridge.features.replication.published import Compared, Published, Setup, used
from weighbridge.report.document import Break, Text
from weighbridge.report.text.environments import names_of, use_display_names
from weighbridge.report.text.formatting import (
    NO_INTERVAL,
    difference_estimate,
    difference_interval,
    plain,
    quantity,
    shared_unit,
    unit_as,
)
from weighbridge.report.text.metric_names import metric_words
from weighbridge.report.text.verdicts import comparison_verdict, cost_text
from weighbridge.statistics import Interval
from weighbridge.statistics.one_sample import RunSpread
from weighbridge.statistics.parametric import TTest
from weighbridge.store.run import RunStore

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

FARTHEST_RATIO = 100.0
"""The ratio beyond which a limit is written as ">": with few blocks, limits reach 10^7."""
NOT_IN_SIZE = "emulated"
_SMALL = 0.001

# -- sentences -------------------------------------------------------------------------------------


def outcome_sentence(replication: Replication) -> str:
    """Return the outcome in one sentence."""
    if replication.pairs:
        counts = Counter(row.verdict for table in replication.pairs for row in table.rows)
        agreements = ", ".join(f"{agreement} {number}" for agreement, number in counts.items())
        return (
            f"{counts.total()} published differences; agreement with the measured ones in significance "
            f"(p < {SIGNIFICANT:g}): {agreements}."
        )
    directions = ", ".join(f"{direction} {number}" for direction, number in replication.counts.items() if number)
    measured = [row for row in replication.rows if row.measured is not None]
    outside = sum(row.outside for row in replication.rows)
    emulated = sum(row.emulated for row in measured)
    compared = len(measured) - emulated
    size = f" {outside} of {compared} published sizes lie outside the measured interval."
    size = size if compared else ""
    if emulated:
        size += f" Sizes measured under emulation ({emulated}) are not comparable."
    with_ = "" if any(row.published.against for row in replication.rows) else f" with {replication.study.baseline}"
    return f"{len(replication.rows)} published comparisons{with_}: {directions}.{size}"


def brief_outcome(replication: Replication) -> str:
    """Return the outcome in about twenty words: how many comparisons have which verdict."""
    counts: Counter[str] = Counter()
    if replication.pairs:
        counts.update(row.verdict for table in replication.pairs for row in table.rows)
        kind = "published differences; the measured ones agree in"
    else:
        for outcomes in replication.outcomes.values():
            counts.update(outcomes)
        kind = "published comparisons"
    return f"{counts.total()} {kind}: {', '.join(f'{name} {number}' for name, number in counts.items() if number)}."


def direction_words(row: ComparedRow, *, everywhere: bool = False) -> str:
    """Return the direction of a comparison with its reservations; ``everywhere``: emulation is stated above."""
    emulated = row.emulated and not everywhere
    weak = []
    if row.measured is not None and row.measured.hidden is not None:
        verdict = comparison_verdict(row.measured)
        return f"{verdict} ({NOT_IN_SIZE})" if emulated else verdict
    if row.measured is not None and row.measured.exploratory:
        weak.append("exploratory")
    if row.verdict in ("agrees", "disagrees") and row.published.proof == SIGN_ONLY:
        weak.append(SIGN_ONLY)
    if row.measured is not None and emulated:
        weak.append(NOT_IN_SIZE)
    return f"{row.verdict} ({', '.join(weak)})" if weak else row.verdict


def published_text(row: PublishedRow) -> str:
    """Return the published comparison: ``1.131 [1.092, 1.172]``, a ratio, or a difference with its unit."""
    unit = row.compared.shown_unit
    if row.compared.scale == "ratio":
        return ratio_text(row.interval) if row.interval else f"{row.effect:.3f}"
    interval = row.interval or Interval(row.effect, row.effect, row.effect)
    return (
        _signed_difference(interval, unit) if row.interval else _signed(interval, difference_estimate(interval, unit))
    )


def measured_text(row: ComparedRow) -> str:
    """Return the measured comparison in the same form, or why there is none."""
    cost = row.measured.cost if row.measured else None
    if cost is None:
        return row.reason
    return ratio_text(cost.interval) if cost.scale == "ratio" else _signed_difference(cost.interval, row.unit)


def _signed_difference(difference: Interval, unit: str) -> str:
    """Return an environment's value minus the baseline's, as published: positive is not always worse."""
    return _signed(difference, difference_interval(difference, unit))


def _signed(difference: Interval, text: str) -> str:
    return f"{'+' if difference.estimate > 0 else ''}{text}"


def ratio_text(ratio: Interval) -> str:
    """Return a ratio with its limits, or a remark for a single block, which has none."""
    if ratio.low <= 0 and math.isinf(ratio.high):
        return f"{ratio.estimate:.3f} {NO_INTERVAL}"
    low, high = (
        f"{each:.3f}" if each <= FARTHEST_RATIO else f">{FARTHEST_RATIO:.0f}" for each in (ratio.low, ratio.high)
    )
    return f"{ratio.estimate:.3f} [{low}, {high}]"


# -- cells of paired differences and of spreads: published above measured --------------------------


def pair_cells(row: PairRow, table: Pairs) -> tuple[Text, ...]:
    """Return the cells of a paired difference."""
    measured = _measured_pair(row.measured, row.unit) if row.measured is not None else ()
    return (row.name,), *_two_lines(_published_pair(row, table), measured), (_own_rules(row),), (row.verdict,)


def spread_cells(row: SpreadRow, table: Spreads) -> tuple[Text, ...]:
    """Return the cells of a spread; "(derived)": a published figure follows from the two others."""
    measured = _measured_spread(row.measured, row.unit, table) if row.measured is not None else ()
    return (row.name,), *_two_lines(_published_spread(row, table), measured)


def _two_lines(published: Sequence[str], measured: Sequence[str]) -> Iterator[Text]:
    for number, text in enumerate(published):
        names = ("published ", "measured ") if number == 0 else ("", "")
        below = (Break(), f"{names[1]}{measured[number]}") if measured else ()
        yield (f"{names[0]}{text}", *below)


def not_measured(rows: Iterable[ComparedRow | PairRow | SpreadRow]) -> list[str]:
    """Return each reason for which rows have no measured value, with the names of these rows."""
    names: dict[str, list[str]] = {}
    for row in rows:
        if row.measured is None:
            names.setdefault(row.reason, []).append(row.name)
    return [f"not measured ({why}): {', '.join(each)}" for why, each in names.items()]


def _published_pair(row: PairRow, table: Pairs) -> tuple[str, str]:
    printed = row.published
    return (
        f"{plain(printed.mean)} ({plain(printed.deviation)}) {table.source.unit}",
        f"{printed.t:.2f}, {p_text(printed.p)}",
    )


def _measured_pair(test: TTest, unit: str) -> tuple[str, str]:
    return f"{plain(test.mean)} ({plain(test.deviation)}) {unit}, {test.pairs} blocks", t_text(test)


def t_text(test: TTest) -> str:
    """Return ``t`` and ``p``, which do not exist if every difference is the same."""
    return "all differences equal" if test.t is None or test.p is None else f"{test.t:.2f}, {p_text(test.p)}"


def p_text(p: float) -> str:
    """Return a p-value to three decimals; a smaller one is written as less, never as 0."""
    return f"< {_SMALL}" if p < _SMALL else f"{p:.3f}"


def _own_rules(row: PairRow) -> str:
    if row.judged is None or row.judged.cost is None:
        return "–"
    cost, verdict = cost_text(row.judged, row.unit), comparison_verdict(row.judged)
    return verdict if cost == verdict else f"cost {cost}: {verdict}"


def _published_spread(row: SpreadRow, table: Spreads) -> tuple[str, str, str]:
    printed, unit = row.published, table.source.unit
    mean, deviation = (
        "–" if value is None else f"{plain(value)} {unit}" for value in (printed.mean, printed.deviation)
    )
    variation = percent(printed.variation)
    return (
        mean,
        f"{deviation} (derived)" if "deviation" in printed.derived else deviation,
        f"{variation} (derived)" if "variation" in printed.derived else variation,
    )


def _measured_spread(spread: RunSpread, unit: str, table: Spreads) -> tuple[str, str, str]:
    """Return the measured figures, in the unit of the published ones if that is a multiple of theirs."""
    shown = unit_as(table.source.unit, unit) or shared_unit([spread.mean], unit)
    mean = f"{quantity(spread.mean, unit, shown)} ({spread.runs} runs)"
    return mean, quantity(spread.deviation, unit, shown), variation_text(spread)


def variation_text(spread: RunSpread) -> str:
    """Return a measured coefficient of variation with its 95% limits: ``2.10% [1.44, 3.83]``."""
    limits = spread.limits
    between = f" [{100 * limits[0]:.2f}, {100 * limits[1]:.2f}]" if limits else ""
    return f"{percent(spread.variation)}{between}"


def percent(share: float | None) -> str:
    """Return a fraction in percent, or a dash without one."""
    return "–" if share is None else f"{100 * share:.2f} %"


# -- the published study itself, and what was different --------------------------------------------


def left_out(study: Published) -> list[tuple[str, str]]:
    """Return the skipped figures, by table, and the reason of each group: the first that fits a figure."""
    omitted: dict[int, dict[str, dict[str, dict[str, None]]]] = {}
    for figure in study.figures:
        number = next((n for n, out in enumerate(study.left_out) if out.fits(figure)), None)
        if number is not None and not used(study, figure):
            metrics = omitted.setdefault(number, {}).setdefault(figure.table, {})
            metrics.setdefault(metric_words(figure.metric), {})[figure.statistic.replace("_", " ")] = None
    return [(_places(omitted[number]), study.left_out[number].why) for number in sorted(omitted)]


def _places(tables: Mapping[str, Mapping[str, Iterable[str]]]) -> str:
    """Return tables with the names of their figures; those with the same figures together."""
    same: dict[str, list[str]] = {}
    for table, metrics in tables.items():
        names = ", ".join(f"{metric} ({', '.join(statistics)})" for metric, statistics in metrics.items())
        same.setdefault(names, []).append(table)
    return "; ".join(f"{', '.join(tables)}: {names}" for names, tables in same.items())


def better_words(study: Published, compared: Compared) -> str:
    """Return whether more is better in a table: ``less is better``."""
    subject = (compared.workload, compared.metric)
    higher = any(each.better == "higher" for each in study.figures if (each.workload, each.metric) == subject)
    return "more is better" if higher is (compared.times > 0) else "less is better"


def comparison_words(study: Published, compared: Compared) -> str:
    """Return what a table compares with: ``ratio to native``, ``ratio of two environments``."""
    if compared.statistic == "ratio":
        return "ratio of two environments"
    return f"{'ratio to' if compared.scale == 'ratio' else 'difference from'} {compared.against or study.baseline}"


def variant(store: RunStore) -> str:
    """Return the profile and link of a run, from its study's first line; empty if that has none."""
    info = store.info()
    first = info.get("study_text", "").partition("\n")[0]
    return first.removeprefix("# ") if first.startswith(f"# {info.get('study', '')}") else ""


def setup_rows(study: Published, store: RunStore, analysis: Analysis) -> list[tuple[str, str, str]]:
    """Return the setups of the published study and of this run: name, published, measured."""
    options = {cell.workload: cell.options for cell in store.cells()}
    return [(each.what, each.published, _measured_setup(each, store, analysis, options)) for each in study.setup]


def _measured_setup(setup: Setup, store: RunStore, analysis: Analysis, options: dict[str, dict[str, object]]) -> str:
    if setup.said:
        return setup.said
    if setup.blocks:
        most = max((row.blocks for report in analysis.metrics for row in report.comparisons), default=0)
        return f"{most} {'block' if most == 1 else 'blocks'} of every environment once, in random order"
    if setup.option:
        workload, option = setup.option.split(".")
        value = options.get(workload, {}).get(option)
        shown = f"{value:.12g}" if isinstance(value, int | float) else ""
        return f"{shown} {setup.unit}".strip() if shown else "not in this run"
    facts = [(name, value) for key in setup.facts for _, name, value, _ in store.facts() if name == key]
    several = len(setup.facts) > 1  # then a value needs its name
    fact_texts = [f"{name} {value}" if several else value for name, value in facts]
    return "; ".join(dict.fromkeys(fact_texts)) or "unknown"


WHY_RATIOS = "Only ratios are compared: absolute figures depend on the machine, kernel, Docker version and durations."


def reading(study: Published, analysis: Analysis) -> list[str]:
    """Return how to read the tables of a replication."""
    margin_ = f"±{plain(100 * analysis.equivalence)}%" if analysis.equivalence else "the margin"
    several = (
        "Published rows are judged by their own spread at 95%: by Welch's t interval on the logarithms (on the "
        f"values for a difference) of the {study.runs} printed runs, or of their printed mean and deviation; rows "
        "without a spread are sign only."
    )
    single = "The published figures are single runs without a spread, so only the sign is compared (sign only)."
    directions = "; ".join(f"{direction}: {meaning}" for direction, meaning in DIRECTIONS.items())
    return [
        "Charts: diamonds are published, circles are measured, bars are 95% intervals. No bar means no published "
        "spread. Very wide bars extend beyond the chart.",
        f"Each row compares one environment with {study.baseline} (or the environment that it names), as published "
        f"and as measured. A ratio is the environment's value divided by {study.baseline}'s; shares are compared by "
        "difference, in points. The measured ratio is the typical one with its 95% interval; its verdict comes from "
        "the run. Published figure outside: it lies outside the measured interval, so the two differ in size.",
        f"{several if study.runs > 1 else single} Within {margin_}: two one-sided tests rule out a larger cost.",
        f"{directions}. A difference below the margin does not contradict an equivalence: the row is inconclusive.",
    ]


# -- the terminal ----------------------------------------------------------------------------------


def print_replication_screen(
    replication: Replication,
    console: "Console",
    run: str = "RUN",
    pages: Sequence[str] = (),
    *,
    yes: bool = False,
    ended: bool = False,
    lasting: bool = True,
) -> None:
    """Print a screen: how many published comparisons agree by environment, whether the control passed, the next step.

    `run` is the run directory, as the last lines name it. `pages` are lines with the paths of its pages. `yes`,
    `ended`, `lasting`: as in `print_report`.
    """
    from weighbridge.report.terminal import NextCommand, bodies, print_run_screen

    analysis = replication.analysis
    shown = _outcome_tables(replication) if replication.outcomes else bodies(analysis, console.width)
    with use_display_names(names_of(analysis)):
        print_run_screen(
            analysis, console, brief_outcome(replication), shown,
            NextCommand(run, yes=yes, ended=ended, lasting=lasting), pages,
        )  # fmt: skip


def _outcome_tables(replication: Replication) -> "Iterator[Sequence[RenderableType]]":
    """Yield the outcomes by environment, in ever shorter forms."""
    from rich.text import Text

    from weighbridge.report.terminal_layout import SplitTable

    shown = [each for each in OUTCOMES if any(counts[each] for counts in replication.outcomes.values())]
    rows = [
        [replication.name(name), *(str(counts[each]) for each in shown)]
        for name, counts in replication.outcomes.items()
    ]
    for number in range(len(rows), 0, -1):
        more = [Text(f"  and {len(rows) - number} more environments", style="dim")] if number < len(rows) else []
        yield [SplitTable(["environment", *shown], rows[:number], numbers=True), *more]


def split_rows(table: ComparedTable) -> tuple[list[ComparedRow], list[ComparedRow]]:
    """Return the rows to show and those to fold: measured ones and the rest; without any measured, all are shown."""
    measured = [row for row in table.rows if row.measured is not None]
    if not measured:
        return list(table.rows), []
    return measured, [row for row in table.rows if row.measured is None]
