"""The document of ``report --json`` stands alone: from it every verdict, and whether to trust, is derived again.

This is the rule as docs/reference/json.md has it ("How a verdict follows"), written a second time: none
of the code that decides is called. Where the two disagree one of them is wrong, or the document lacks something.
"""

import json
import math
from collections import defaultdict
from functools import cache
from itertools import combinations_with_replacement
from statistics import fmean, median, stdev

import pytest
from scipy.special import stdtr, stdtrit

from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Metric
from weighbridge.model.study import Repetitions
from weighbridge.report.export.json import report_json

from .conftest import FINISHED
from .made_up_runs import LOSS, TCP, THROUGHPUT, Recipe, Workload, make_run
from .rich_runs import RICH
from .swept_runs import Sweep, make_sweep
from .test_golden import RUNS

SAME = 1e-9
MEMORY = Metric("memory_server_beyond_baseline", "MiB", "lower")
CABLE = (Flag(FlagCode.CABLE, "host a eth0 transmit", figures={"share": 0.99, "rate": 100e6}),)
OTHERS = (Flag(FlagCode.OTHER_WORK, figures={"cpus": 1.8}),)
ARMS = ("native", "bridge", "native-again")
FURTHER = {
    "several-looks": Recipe(
        costs={"bridge": 1.04, "host": 1.0}, repetitions=Repetitions(target="2%", min=10, max=60)
    ),
    "hidden": Recipe(costs={"bridge": 1.0}, flags={(block, arm): CABLE for block in range(1, 11) for arm in ARMS}),
    "disturbed-without-control": Recipe(
        costs={"bridge": 1.2}, aa=False, flags={(block, "native"): OTHERS for block in range(1, 11)}
    ),
    "little-memory": Recipe(
        costs={"bridge": 1.0002, "host": 1.1},
        workloads=[Workload("tcp", [(THROUGHPUT, 1e9, 0.01), (MEMORY, 100.0, 0.0), (LOSS, 0.0, 0.0)])],
    ),
    "identical": Recipe(
        costs={"bridge": 1.5, "host": 1.0}, blocks=5, workloads=[Workload("tcp", [(THROUGHPUT, 1e9, 0.0)])]
    ),
    "many-comparisons": Recipe(
        costs={"bridge": 1.012, "host": 1.008}, workloads=[TCP, *(Workload(n, TCP.metrics) for n in "abcd")]
    ),
}
MADE_UP = {**RUNS, **FURTHER, "rich": RICH}


@pytest.fixture(scope="module", params=[*FINISHED, *MADE_UP])
def document(request, finished_run, tmp_path_factory):
    """What ``report --json`` says of a run, as a program reads it."""
    name = request.param
    if name in FINISHED:
        return finished_run(name).document
    make = make_sweep if isinstance(MADE_UP[name], Sweep) else make_run
    with make(tmp_path_factory.mktemp("run") / "run", MADE_UP[name]) as store:
        return json.loads(json.dumps(report_json(store), allow_nan=False))


def test_every_verdict_follows_from_the_document(document):
    rows = document["costs"] + document["ladder"]
    p_values = adjusted([row["family"] for row in rows], [p_values_of(document, row) for row in rows])
    for row, adjusted_p in zip(rows, p_values, strict=True):
        where = [row[key] for key in ("environment", "workload", "metric", "level")]
        assert near(row["adjusted_p"], adjusted_p), where
        assert all(map(near, stated(row), derived_cost(document, row))), where
        assert row["verdict"] == verdict(document, row, adjusted_p), where


def test_the_sides_of_a_cost_are_the_medians_of_its_blocks(document):
    for row in document["costs"] + document["ladder"]:
        pairs = row["pairs"]
        assert row["rounds"] == len(pairs["round"]) == len(pairs["baseline"]) == len(pairs["environment"])
        if row["rounds"]:
            assert row["baseline_value"] == median(pairs["baseline"]) and row["value"] == median(pairs["environment"])


def test_noise_is_what_the_aa_arm_shows(document):
    """The limit of its interval that is further from no cost, to both sides."""
    arms = {place(row): row for row in document["costs"] if row["control"]}
    for row in document["costs"] + document["ladder"]:
        if row["noise_low"] is None:
            continue
        aa = arms[place(row)]
        _, low, high = interval(document, aa)
        floor = max(abs(low), abs(high))
        costs = sorted(cost_of(row, each) for each in (-floor, floor))
        assert near(row["noise_low"], costs[0]) and near(row["noise_high"], costs[1]), place(row)


def test_a_cost_is_exploratory_below_ten_blocks_and_only_a_cost_is(document):
    for row in document["costs"] + document["ladder"]:
        assert row["exploratory"] == (row["rounds"] < 10 if row["rounds"] else None)
        assert (row["cost"] is None) == (row["scale"] is None) == (row["rounds"] == 0)
        assert row["visible_cost"] is None or (row["visible_cost"] > 0 and not row["control"])


def test_each_remark_stands_once(document):
    texts = [json.dumps(remark, sort_keys=True) for remark in document["remarks"]]
    assert len(texts) == len(set(texts))
    lists = [row["remarks"] for row in document["costs"] + document["ladder"]]
    lists += [document["notices"], document["confounders"]]
    assert {each for places in lists for each in places} == {*range(len(texts))}


def test_each_cost_stands_once_and_its_environments_are_told(document):
    for rows in (document["costs"], document["ladder"]):
        places = [(row["environment"], row["against"], place(row)) for row in rows]
        assert len(places) == len({json.dumps(each) for each in places})
        assert all({environment, against} <= {*document["environments"]} for environment, against, _ in places)
    others = {row["against"] for row in document["costs"]} - {document["baseline"]}
    assert others <= {each for each in document["environments"] if each.startswith("base-")}  # of two versions
    (aa_arm,) = [name for name, each in document["environments"].items() if each["control_of"]] or [None]
    assert aa_arm == document["control"]


def test_trust_follows_from_the_document(document):
    """A shift: the A/A arm's 99% interval excludes no cost, and so does Holm at 1%, headlines by themselves."""
    checks = [row for row in document["costs"] if row["control"] and row["rounds"] >= 6]
    p_values = [NOTHING if little_memory(row) else p_values_of(document, row, aa=True) for row in checks]
    shifted = [
        {key: row[key] for key in ("workload", "metric", "level")}
        for row, p in zip(checks, adjusted([row["primary"] for row in checks], p_values, 0.01), strict=True)
        if p <= 0.01 and excludes_none(interval_of(effects(row), 0.01 * share(document, aa=True)))
    ]
    assert document["control_failed"] == shifted
    assert document["control_passed"] == (not shifted if checks else None)
    reason = (
        "no-control" if document["control"] is None else "failed" if shifted else "passed" if checks else "few-rounds"
    )
    assert document["control_reason"] == reason


def test_what_is_tested_together_is_counted(document):
    tested = defaultdict(int)
    for row in document["costs"] + document["ladder"]:
        tested[row["family"]] += row["adjusted_p"] is not None
    assert document["families"] == {family: tested[family] for family in document["families"]}
    assert not tested[None]


# -- the rule ----------------------------------------------------------------------------------------


def verdict(document, row, adjusted_p):
    if row["control"]:
        return None
    claimed = claim(document, row, adjusted_p) if row["scale"] else "undecided"
    if row["scale"] and claimed not in ("significant", "negligible") and limited_alike(document, row):
        return "hidden"
    claimed = "undecided" if claimed == "negligible" else claimed
    return claimed if row["rounds"] >= 6 and not unproven(document, row) else "undecided"


def unproven(document, row):
    """A shift of the A/A arm in a headline leaves nothing proven, another one what is no headline."""
    headlines = {place(each): each["primary"] for each in document["costs"]}
    shifted = [headlines[place(each)] for each in document["control_failed"]]
    return any(shifted) or (bool(shifted) and not row["primary"])


def claim(document, row, adjusted_p):
    """What the numbers show, were nothing hidden."""
    codes = {document["remarks"][place]["code"] for place in row["remarks"]}
    if within_margin(document, row) and not may_be_chance(effects(row)):
        return "undecided" if codes & {"selected", "overloaded", "durability", "no-path"} else "equivalent"
    if not excludes_none(interval(document, row)) or adjusted_p > 0.05:
        return "undecided"
    guarded = row["resource_use"] or row["rounds"] < 10 or document["disturbed"]
    negligible = little_memory(row) or (guarded and within_noise(row, document["disturbed"]))
    return "negligible" if negligible or "no-path" in codes else "significant"


def within_noise(row, disturbed):
    if row["noise_low"] is None:
        return disturbed
    return row["noise_low"] <= row["cost"] <= row["noise_high"]


def little_memory(row):
    itself_a_difference = row["metric"] == "memory_usage" or row["metric"].endswith("_beyond_baseline")
    return row["metric"].startswith("memory_") and itself_a_difference and abs(row["cost"]) < 1.0


def limited_alike(document, row):
    """Whether most trials of each side met the same limit, which gives both the same result."""
    hiding = {"cable", "generator"} | ({"asked-rate"} if row["unit"].endswith("/s") else set())
    limits = []
    for environment in (row["against"], row["environment"]):
        trials, of = next((
            (each["trials"], each["of"]) for each in document["bottlenecks"]
            if (each["environment"], each["workload"], each["level"]) == (environment, row["workload"], row["level"])
        ), ({}, 0))  # fmt: skip
        limits.append({kind for kind in hiding if 2 * trials.get(kind, 0) > of})
    return bool(limits[0] & limits[1]) and not row["resource_use"]


def within_margin(document, row):
    """Two one-sided tests on the scale of logarithms; of differences only those that are none at all."""
    if document["margin"] is None:
        return False
    if row["scale"] == "difference":
        return row["rounds"] > 1 and not any(effects(row))
    margin = math.log1p(document["margin"])
    _, low, high = interval(document, row, 0.10)
    return -margin < low and high < margin


def effects(row):
    """One for each block: the logarithm of its ratio, or its difference."""
    sides = zip(row["pairs"]["baseline"], row["pairs"]["environment"], strict=True)
    if row["scale"] == "ratio":
        return tuple(math.log(value) - math.log(baseline) for baseline, value in sides)
    return tuple(value - baseline for baseline, value in sides)


def share(document, *, aa=False):
    return document["control_error_share" if aa else "error_share"]


def interval(document, row, error=0.05):
    """The typical effect with its limits at the level that several looks leave."""
    return interval_of(effects(row), error * share(document))


@cache
def interval_of(blocks, error):
    """The Hodges-Lehmann estimate with its limits: exact by signed ranks from ten blocks on, by Student's t below."""
    walsh = sorted((one + other) / 2 for one, other in combinations_with_replacement(blocks, 2))
    estimate, n = median(walsh), len(blocks)
    if n >= 10:
        rank = critical_rank(n, error)
        return estimate, walsh[rank - 1], walsh[-rank]
    if n == 1:
        return estimate, -math.inf, math.inf
    half = 0.0 if same(blocks) else stdtrit(n - 1, 1 - error / 2) * stdev(blocks) / math.sqrt(n)
    return estimate, min(estimate, fmean(blocks) - half), max(estimate, fmean(blocks) + half)


@cache
def critical_rank(n, error):
    """The largest k such that a sum of signed ranks below k has a chance of at most half the error."""
    ways = [1] + [0] * (n * (n + 1) // 2)
    for rank in range(1, n + 1):
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    chance, k = 0, 0
    while chance + ways[k] <= 2**n * error / 2:
        chance, k = chance + ways[k], k + 1
    return k


def excludes_none(limits):
    _, low, high = limits
    return low > 0 or high < 0


def same(blocks):
    return max(blocks) - min(blocks) <= SAME * max(map(abs, blocks))


def may_be_chance(blocks):
    return same(blocks) and 2.0 ** (1 - len(blocks)) > 0.05


NOTHING = False, 0.5, 1.0, 1.0
"""What a comparison is tested with that shows nothing at all."""


def p_values_of(document, row, *, aa=False):
    """Whether Student's may count, the smallest exact p-value of so many blocks, the exact one, Student's."""
    if row["scale"] is None or (row["control"] and not aa):
        return None
    blocks = effects(row)
    found = 2.0 ** (1 - len(blocks)), exact_p_value(blocks), student_p_value(blocks)
    enough = len(blocks) >= 10 or document["control"] is not None
    return enough, *(min(1.0, each / share(document, aa=aa)) for each in found)


def student_p_value(blocks):
    """Student's t on the effects; where all are the same, the sign test's."""
    if len(blocks) < 2:
        return 1.0
    if same(blocks):
        return 2.0 ** (1 - len(blocks)) if blocks[0] else 1.0
    return 2 * stdtr(len(blocks) - 1, -abs(fmean(blocks)) / stdev(blocks) * math.sqrt(len(blocks)))


def exact_p_value(blocks):
    """Among all flips of signs: of the signed-rank sum (Pratt's, mean ranks) from ten blocks on, of the mean else."""
    if len(blocks) < 10:
        sums = [0.0]
        for value in blocks:
            sums = [each + sign * value for each in sums for sign in (1, -1)]
        return fmean(abs(each) >= abs(math.fsum(blocks)) * (1 - 1e-9) for each in sums)
    sizes = sorted(map(abs, blocks))
    twice = [sizes.index(abs(each)) * 2 + sizes.count(abs(each)) + 1 for each in blocks]
    moving = [rank for rank, each in zip(twice, blocks, strict=True) if each]
    positive = sum(rank for rank, each in zip(twice, blocks, strict=True) if each > 0)
    smaller = min(positive, sum(moving) - positive)
    ways = [1] + [0] * sum(moving)
    for rank in moving:
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return min(1.0, 2 * sum(ways[: smaller + 1]) / 2 ** len(moving))


def adjusted(families, tested, level=0.05):
    """Holm's step-down in each family: of exact p-values, and of Student's where these cannot be small enough."""
    result = [None] * len(tested)
    for family in set(families):
        places = [i for i, each in enumerate(tested) if families[i] == family and each is not None]
        p_values = {}
        for i in places:
            enough, smallest, exact, student = tested[i]
            one_sign = exact <= smallest * (1 + 1e-9)
            p_values[i] = student if smallest * len(places) > level and enough and one_sign else exact
        largest = 0.0
        for rank, place in enumerate(sorted(places, key=p_values.get)):
            largest = max(largest, (len(places) - rank) * p_values[place])
            result[place] = min(1.0, largest)
    return result


def derived_cost(document, row):
    """The cost with its limits as sentences say it."""
    if row["scale"] is None:
        return None, None, None
    cost, *limits = (cost_of(row, each) if math.isfinite(each) else None for each in interval(document, row))
    return (cost, *(reversed(limits) if row["better"] == "higher" else limits))


def cost_of(row, effect):
    """Positive is worse: in percent, or in the unit."""
    worse = -1 if row["better"] == "higher" else 1
    return worse * (100 * math.expm1(effect) if row["scale"] == "ratio" else effect)


def place(row):
    return row["workload"], row["metric"], tuple(row["level"].items())


def stated(row):
    return row["cost"], row["cost_low"], row["cost_high"]


def near(one, other):
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-7)
