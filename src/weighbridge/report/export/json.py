"""A run for machines: the document of ``report --json``."""

import json
import math
from collections.abc import Sequence
from typing import Any

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.bottleneck import Bottleneck
from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.gate import Finding
from weighbridge.analysis.latency import PERCENTS
from weighbridge.analysis.merged_latency import Latency, LatencyReport
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.report.export.curves import curves_json
from weighbridge.report.export.provenance import provenance
from weighbridge.report.export.remarks import remark_json
from weighbridge.report.text.remarks import coded_text
from weighbridge.report.text.steps import change_text
from weighbridge.statistics import Cost
from weighbridge.store.run import RunStore

FORMAT = 2
"""Version of the document and of ``costs.csv``; `report_json` says what changed in which."""


def report_json(store: RunStore, analysis: Analysis | None = None) -> dict[str, Any]:
    """Give the stable document of ``report --json``; every value is JSON, infinite numbers are null.

    - ``study``: the study's name. ``run``: the run's id. ``format``: the version of this document, 2 (``schema``: the
      same number, under the name that it had in version 1). Since version 1: ``cost`` with its limits and unit in
      ``costs``, ``ladder`` and ``percentiles``, which differences have too; ``format``, ``date``, ``kernel``,
      ``engine``, ``versions``, ``hosts``, ``paths``, ``bottlenecks``, ``hidden``; in ``curves`` ``peak`` was ``knee``
      and ``peak_cost`` was ``peak``; a step of a ladder that branches is not against the row before.
    - ``date``: when the run began, ISO 8601 in UTC. ``kernel``: of the machine that Weighbridge ran on.
      ``engine``: environment -> engine and version, without environments that have none. ``versions``:
      ``weighbridge`` (null in older runs), ``host`` (program -> version), ``userland`` (Debian package -> version).
      ``hosts``: name -> facts of the study's own hosts (``kernel`` of an ssh host, ...). ``paths``: the network path
      of "ENVIRONMENT@HOST OF THE CLIENT" as it was probed: interfaces, ``mss``, ``routers``, ``translation``,
      netfilter ``hooks`` and ``rules`` that it crosses; {} in runs from before paths were probed.
    - ``noise_floor``: median noise floor of the headline metrics as a fraction (0.011 is ±1.1 %); null if not
      known, or below five blocks.
    - ``trusted``: false where the A/A arm shows a cost, true where no such false cost was seen (which says nothing
      about how small a cost the session sees: see ``noise_floor``); null without an A/A arm or with fewer than two
      blocks of it.
    - ``costs``: one object per workload, level, metric and environment, in the study's order; the A/A arm too, whose
      ``flags`` hold ``aa: ...``:

      - ``environment``, ``workload``, ``metric``: names. ``level``: object of the swept factors, {} where none is.
      - ``unit``: unit of ``baseline_value``. ``better``: "higher" or "lower".
      - ``baseline_value``: the baseline's median over the blocks compared (without any, over its own), in ``unit``;
        null where it has no value.
      - ``cost``, ``cost_low``, ``cost_high``: the typical cost with its 95 % interval as sentences say it: positive
        is worse, 0 is no cost, ``cost_low`` <= ``cost_high``. ``cost_unit``: "%" of the baseline's value, or ``unit``
        where the cost is a difference ("points" where ``unit`` is "%"). All null without a complete block; with a
        single block there is no interval, and the limits are null.
      - ``typical``, ``low``, ``high``: the same cost as the ratio to the baseline, 1.0 is no cost; null where it is a
        difference.
      - ``geometric``, ``arithmetic``: ratio of the geometric and of the arithmetic means, or null.
      - ``blocks``: number of blocks compared. ``exploratory``: true below ten blocks.
      - ``resource_use``: true for what the meters add (CPU per Gbit, memory beyond the baseline), false for what the
        workload measures.
      - ``verdict``: "different" (after Holm across the report, resource use apart; never below 1 MiB of memory),
        "equivalent", "inconclusive" or "hidden"; with ``exploratory`` true it is only a hint.
      - ``hidden``: with the verdict "hidden" the limit that both sides met: ``by`` ("cable", "asked-rate",
        "generator"), ``share`` (median share of it that was used), ``rate`` and ``unit`` (where it is a rate, else
        null), ``trials`` and ``of`` (trials of both sides); else null.
      - ``flags``: strings ``code: words``; `weighbridge.report.text.remark_codes.CODES` lists the codes.
      - ``remarks``: the same as objects: ``code``, ``text`` (the words) and, by code, figures and names:
        ``environment``, ``blocks``, ``noise_floor``, ``count`` of ``trials``, ... (`weighbridge.analysis.remarks`).
    - ``ladder``: one object per step and metric where the study has a ladder, else empty: the keys of ``costs`` with
      every number against the environment that it adds to, which ``against`` names. ``baseline_value`` is that
      environment's median, ``verdict`` is after Holm across the steps. ``change``: what the step changes, in words.
    - ``percentiles``: one object per workload, level, metric and environment whose latencies were kept as histograms:
      ``environment``, ``workload``, ``metric``, ``level``, ``unit`` ("s"), ``runs``, ``requests``, and
      ``percentiles``: percent as text -> ``value`` (of all requests of all runs), and as in ``costs`` ``cost``,
      ``cost_low``, ``cost_high``, ``cost_unit``, ``typical``, ``low``, ``high`` (of the runs' own percentiles; null
      for the baseline, and where a run has fewer than ten requests beyond).
    - ``curves``: one object per throughput and environment of a workload whose load is swept: ``environment``,
      ``workload``, ``metric``, ``unit``, ``load`` (the option) and ``fixed`` (the other factors in words);
      ``peak``: ``level`` (as written), ``value`` (median, in ``unit``), ``highest`` and ``of`` (blocks), or null;
      ``peak_cost``: the ratio of its highest value in a block to the baseline's (``typical``, ``low``, ``high``,
      ``blocks``), null for the baseline and without such a block; ``errors_from``: the lowest level with errors in
      some block, as written, or null.
    - ``bottlenecks``: one object per workload, level and environment: ``environment``, ``workload``, ``level``, and
      ``trials``: kind ("cable", "asked-rate", "generator", "cpu-quota", "cpus", "disk", "none") -> how many had it.
    - ``broke``: one object per workload, level and environment in which trials broke under their load:
      ``environment``, ``workload``, ``level``, ``broke`` and ``of`` (trials), ``reason``.
    """
    analysis = analysis or analyse(store)
    return {
        "study": analysis.study,
        "run": analysis.run_id,
        "format": FORMAT,
        "schema": FORMAT,
        **provenance(store),
        "noise_floor": analysis.trust.noise_floor,
        "trusted": analysis.trust.trusted,
        "costs": [cost_json(report, row) for report in analysis.metrics for row in report.comparisons],
        "ladder": [
            {**cost_json(ladder.report, step.row), "against": step.previous, "change": change_text(step.changes)}
            for ladder in analysis.ladder
            for step in ladder.steps
        ],
        "percentiles": [_percentiles(report, row) for report in analysis.latencies for row in report.rows],
        "curves": curves_json(analysis.sweeps),
        "bottlenecks": [
            {"environment": name, "workload": workload, "level": json.loads(level), "trials": dict(each)}
            for (workload, level, name), each in analysis.bottlenecks.items()
        ],
        "broke": [
            {"environment": name, "workload": workload, "level": json.loads(level), "broke": each.trials,
             "of": each.of, "reason": each.reason}
            for (workload, level, name), each in analysis.broken.items()
        ],
    }  # fmt: skip


def _percentiles(report: LatencyReport, row: Latency) -> dict[str, Any]:
    found = {}
    for percent, value, cost in zip(PERCENTS, row.percentiles, row.costs, strict=True):
        ratio = cost if cost is not None and cost.scale == "ratio" else None
        typical = finite(ratio.typical) if ratio else None
        found[f"{percent:g}"] = {"value": value, **_worsening(cost, "s"), "typical": typical, **limits_of(ratio)}
    return {
        "environment": row.environment,
        "workload": report.workload,
        "metric": report.metric,
        "level": json.loads(report.level),
        "unit": "s",
        "runs": row.runs,
        "requests": row.requests,
        "percentiles": found,
    }


def hidden_json(limit: Bottleneck | None) -> dict[str, Any] | None:
    """The limit that hides a difference, for machines."""
    if limit is None:
        return None
    return {
        "by": limit.kind, "share": limit.share, "rate": limit.rate, "unit": limit.unit or None,
        "trials": limit.trials, "of": limit.of,
    }  # fmt: skip


def finite(value: float | None) -> float | None:
    """A number that JSON has; None where it has not."""
    return value if value is not None and math.isfinite(value) else None


def limits_of(cost: Cost | None) -> dict[str, float | None]:
    """The interval; a single block has none."""
    known = cost is not None and cost.blocks > 1
    return {name: finite(getattr(cost, name)) if known else None for name in ("low", "high")}


def _worsening(cost: Cost | None, unit: str) -> dict[str, float | str | None]:
    """The cost as sentences say it: positive is worse, in percent or in the metric's `unit`."""
    if cost is None:
        return dict.fromkeys(("cost", "cost_low", "cost_high", "cost_unit"))
    worse, known = cost.worsening, cost.blocks > 1
    return {
        "cost": finite(worse.estimate),
        "cost_low": finite(worse.low) if known else None,
        "cost_high": finite(worse.high) if known else None,
        "cost_unit": "%" if cost.scale == "ratio" else difference_unit(unit),
    }


def limits_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Give what ``report --json --fail-if ...`` adds as ``limits``: one object per limit and comparison.

    ``limit``: the expression. ``environment``, ``workload`` (with its level, as a limit writes it), ``metric``.
    ``outcome``: "exceeded", "kept" or "undecided", and ``reason``, why. ``cost``, ``cost_low``, ``cost_high``,
    ``cost_unit`` and ``blocks`` as in ``costs``.
    """
    found = []
    for finding in findings:
        target = finding.target
        cost = target.row.cost if target.row is not None else None
        found.append({
            "limit": finding.limit.text, "environment": target.environment, "workload": target.workload,
            "metric": target.metric, "outcome": finding.outcome, "reason": finding.reason,
            **_worsening(cost, target.report.unit if target.report else ""), "blocks": finding.blocks,
        })  # fmt: skip
    return found


def cost_json(report: MetricReport, row: Comparison) -> dict[str, Any]:
    """One object of ``costs``."""
    cost = row.cost
    ratio = cost if cost is not None and cost.scale == "ratio" else None
    return {
        "environment": row.environment,
        "workload": report.workload,
        "metric": report.metric,
        "level": json.loads(report.level),
        "unit": report.unit,
        "better": report.better,
        "baseline_value": report.baseline_value if row.baseline_value is None else row.baseline_value,
        **_worsening(cost, report.unit),
        "typical": finite(ratio.typical) if ratio else None,
        **limits_of(ratio),
        "geometric": finite(ratio.geometric.estimate) if ratio and ratio.geometric else None,
        "arithmetic": finite(ratio.arithmetic.estimate) if ratio else None,
        "blocks": row.blocks,
        "exploratory": row.blocks < 10,
        "resource_use": report.resource_use,
        "verdict": row.verdict,
        "hidden": hidden_json(row.hidden),
        "flags": [coded_text(remark) for remark in row.remarks],
        "remarks": [remark_json(remark) for remark in row.remarks],
    }
