"""The words of a replication for readers: sentences, cells of tables, differences in setup, and the terminal."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from weighbridge.analysis.results import Analysis
from weighbridge.model.text import printable
from weighbridge.replication.comparison import (
    OUTCOMES,
    SIGNIFICANT,
    ComparedRow,
    ComparedTable,
    PairRow,
    Pairs,
    Replication,
    SpreadRow,
    Spreads,
)
from weighbridge.replication.proof import PublishedRow
from weighbridge.replication.published import Compared, Published, Setup, used
from weighbridge.report.text.environments import names_of, use_display_names
from weighbridge.report.text.formatting import (
    NO_INTERVAL,
    difference_interval,
    plain,
    quantity,
    shared_unit,
    unit_as,
)
from weighbridge.report.text.metric_names import metric_words
from weighbridge.report.text.verdicts import comparison_verdict, cost_text
from weighbridge.statistics import Interval
from weighbridge.statistics.parametric import TTest
from weighbridge.store.run import RunStore

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

FARTHEST_RATIO = 100.0
"""The ratio beyond which a limit is written as ">": with few blocks, limits reach 10^7."""
NOT_IN_SIZE = "emulated"
STYLES = {"agrees": "green", "disagrees": "bold red"}
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
    outside = sum(row.apart for row in replication.rows)
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
    if row.verdict in ("agrees", "disagrees") and row.published.proof == "sign only":
        weak.append("sign only")
    if row.measured is not None and emulated:
        weak.append(NOT_IN_SIZE)
    return f"{row.verdict} ({', '.join(weak)})" if weak else row.verdict


def published_text(row: PublishedRow) -> str:
    """Return the published comparison: ``1.131 [1.092, 1.172]``, a ratio, or a difference with its unit."""
    unit = row.compared.shown_unit
    if row.compared.scale == "ratio":
        return ratio_text(row.interval) if row.interval else f"{row.effect:.3f}"
    interval = row.interval or Interval(row.effect, row.effect, row.effect)
    text = _signed_difference(interval, unit)
    return text if row.interval else text.split(" [")[0]


def measured_text(row: ComparedRow) -> str:
    """Return the measured comparison in the same form, or why there is none."""
    cost = row.measured.cost if row.measured else None
    if cost is None:
        return row.why
    return ratio_text(cost.interval) if cost.scale == "ratio" else _signed_difference(cost.interval, row.unit)


def _signed_difference(difference: Interval, unit: str) -> str:
    """Return an environment's value minus the baseline's, as published; not as a cost (positive is worse)."""
    return f"{'+' if difference.estimate > 0 else ''}{difference_interval(difference, unit)}"


def ratio_text(ratio: Interval) -> str:
    """Return a ratio with its limits, or a remark for a single block, which has none."""
    if ratio.low <= 0 and math.isinf(ratio.high):
        return f"{ratio.estimate:.3f} {NO_INTERVAL}"
    low, high = (
        f"{each:.3f}" if each <= FARTHEST_RATIO else f">{FARTHEST_RATIO:.0f}" for each in (ratio.low, ratio.high)
    )
    return f"{ratio.estimate:.3f} [{low}, {high}]"


# -- cells of paired differences and of spreads ----------------------------------------------------

PAIR_COLUMNS = (
    "difference", "published mean (deviation)", "t, p", "measured mean (deviation)", "t, p",
    "verdict by Weighbridge's rules", "agrees in",
)  # fmt: skip
"""The columns of a table. The run's own rules are those of its report: a ratio with its interval, and a verdict."""
SPREAD_COLUMNS = (
    "environment", "published mean", "deviation", "coefficient of variation", "measured mean", "deviation",
    "coefficient of variation [95%]",
)  # fmt: skip
"""The columns of a table; a published figure marked "derived" follows from the two others."""


def pair_cells(table: Pairs) -> list[tuple[str, ...]]:
    """Return the rows of a table; without a measurement, the reason replaces the measured values."""
    return [
        (row.name, *_published_pair(row, table), *_measured_pair(row), _own_rules(row), row.verdict)
        for row in table.rows
    ]


def spread_cells(table: Spreads) -> list[tuple[str, ...]]:
    """Return the rows of a table; without a measurement, the reason replaces the first measured value."""
    return [(row.name, *_published_spread(row, table), *_measured_spread(row, table)) for row in table.rows]


def _published_pair(row: PairRow, table: Pairs) -> tuple[str, str]:
    printed = row.published
    return (
        f"{plain(printed.mean)} ({plain(printed.deviation)}) {table.source.unit}",
        f"{printed.t:.2f}, {p_text(printed.p)}",
    )


def _measured_pair(row: PairRow) -> tuple[str, str]:
    test = row.measured
    if test is None:
        return row.why, "–"
    mean = f"{plain(test.mean)} ({plain(test.deviation)}) {row.unit}, {test.pairs} blocks"
    return mean, t_text(test)


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


def _measured_spread(row: SpreadRow, table: Spreads) -> tuple[str, str, str]:
    """Return the measured figures, in the published unit if both units are multiples of each other."""
    spread = row.measured
    if spread is None:
        return row.why, "–", "–"
    limits = spread.limits
    between = f" [{100 * limits[0]:.2f}, {100 * limits[1]:.2f}]" if limits else ""
    shown = unit_as(table.source.unit, row.unit) or shared_unit([spread.mean], row.unit)
    mean = f"{quantity(spread.mean, row.unit, shown)} ({spread.runs} runs)"
    return mean, quantity(spread.deviation, row.unit, shown), f"{percent(spread.variation)}{between}"


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


# -- the terminal ----------------------------------------------------------------------------------


def print_replication_screen(
    replication: Replication,
    console: "Console",
    run: str = "RUN",
    pages: Sequence[str] = (),
    *,
    yes: bool = False,
    ended: bool = False,
) -> None:
    """Print a screen: how many published comparisons agree by environment, whether the control passed, the next step.

    `run` is the run directory, as the last lines name it. `pages` are lines with the paths of its pages. `yes`,
    `ended`: as in `print_report`.
    """
    from weighbridge.report.terminal import NextCommand, bodies, print_run_screen

    analysis = replication.analysis
    shown = _outcome_tables(replication) if replication.outcomes else bodies(analysis, console.width)
    with use_display_names(names_of(analysis)):
        print_run_screen(
            analysis, console, brief_outcome(replication), shown, NextCommand(run, yes=yes, ended=ended), pages
        )


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


def print_replication(replication: Replication, console: "Console") -> None:
    """Print the table of directions to `console`, after the run's own report with the notices.

    "outside" means that the published figure lies outside the interval.
    """
    from rich.text import Text

    console.print(Text(f"\nbeside the published study: {replication.study.source}", style="bold"))
    for name, counts in replication.summary:
        console.print(Text(f"  {replication.name(name)}: {counts}"))
    for compared in replication.tables:
        _print_comparisons(replication, compared, console)
    for pairs in replication.pairs:
        print_pairs(pairs, console)
    for spreads in replication.spreads:
        print_spreads(spreads, console)
    console.print(Text(outcome_sentence(replication), style="bold"))


def parted(table: ComparedTable) -> tuple[list[ComparedRow], list[ComparedRow]]:
    """Return the rows to show and those to fold: measured ones and the rest; without any measured, all are shown."""
    measured = [row for row in table.rows if row.measured is not None]
    if not measured:
        return list(table.rows), []
    return measured, [row for row in table.rows if row.measured is None]


def _print_comparisons(replication: Replication, table: ComparedTable, console: "Console") -> None:
    study, everywhere = replication.study, replication.all_emulated
    source, (shown, folded) = table.source, parted(table)
    title = f"{source.title} ({comparison_words(study, source)}; {better_words(study, source)})"
    if all(row.measured is None for row in shown):
        _print_table(title, (), (), [(row.why, "") for row in shown], console)
        return
    lines = [
        (row.name, published_text(row.published), f"{measured_text(row)}{' outside' if row.apart else ''}",
         direction_words(row, everywhere=everywhere))
        for row in shown
    ]  # fmt: skip
    styles = [STYLES.get(row.verdict, "dim") for row in shown]
    columns = ("environment", "published", "measured", "direction")
    _print_table(title, columns, lines, [(row.why, row.name) for row in folded], console, styles)


def print_pairs(table: Pairs, console: "Console") -> None:
    """Print a table of paired differences, with published and measured figures on separate lines."""
    lines: list[tuple[str, ...]] = []
    for row in table.rows:
        lines.append((row.name, "published", *_published_pair(row, table), row.verdict))
        if row.measured is not None:
            lines.append(("", "measured", *_measured_pair(row), _own_rules(row)))
    absent = [(row.why, "") for row in table.rows if row.measured is None]
    columns = ("difference", "", "mean (deviation)", "t, p", "agrees in")
    _print_table(table.source.title, columns, lines, absent, console)


def print_spreads(table: Spreads, console: "Console") -> None:
    """Print a table of spreads, with published and measured figures on separate lines because of their width."""
    lines: list[tuple[str, ...]] = []
    for row in table.rows:
        lines.append((row.name, "published", *_published_spread(row, table)))
        if row.measured is not None:
            lines.append(("", "measured", *_measured_spread(row, table)))
    absent = [(row.why, row.name) for row in table.rows if row.measured is None]
    columns = ("environment", "", "mean", "deviation", "coefficient of variation [95%]")
    _print_table(table.source.title, columns, lines, absent, console)


def _print_table(
    title: str, columns: Sequence[str], lines: Sequence[Sequence[str]], absent: Iterable[tuple[str, str]],
    console: "Console", styles: Sequence[str] = (),
) -> None:  # fmt: skip
    """Print a table, then each reason for missing rows with their names (or the reason alone).

    ``styles`` apply to the lines' last cells."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console.print(Text(f"\n{title}", style="bold"))
    if columns:
        table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
        for line, style in zip(lines, styles or [""] * len(lines), strict=True):
            last = Text(printable(line[-1]), style=style)
            table.add_row(*(Text(printable(cell)) for cell in line[:-1]), last)
        console.print(table)
    reasons: dict[str, list[str]] = {}
    for reason, name in absent:
        reasons.setdefault(reason, []).extend([name] if name else [])
    for reason, names in reasons.items():
        explanation = f" ({printable(reason)}): {', '.join(names)}" if names else f": {printable(reason)}"
        console.print(Text(f"  not measured{explanation}", style="dim"))
