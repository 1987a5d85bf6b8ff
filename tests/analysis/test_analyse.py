import json
import math
import sqlite3
from dataclasses import asdict
from statistics import fmean, stdev

import pytest
from scipy import stats

from report.made_up_runs import LATENCY, LOSS, REQUESTS, TCP, THROUGHPUT, Workload
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.judgement import holm_levels
from weighbridge.analysis.plan import plan_of
from weighbridge.analysis.remarks.meters import Unresolved
from weighbridge.analysis.remarks.rounds import Extended
from weighbridge.model.decisions import GateLook, gate_looks_text
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Metric, Outcome
from weighbridge.model.study import Repetitions
from weighbridge.statistics import Contrast, Looks, compare, error_at, looks_share, visible_effect
from weighbridge.statistics.verdicts import adjusted, excludes_no_cost, family_p_value, within_noise
from weighbridge.store.blocks import arm_values
from weighbridge.store.extensions import RunExtension, note_begin, note_end
from weighbridge.store.reader import GATE_LOOKS
from weighbridge.store.run import DATABASE, RunStore

REDIS = [Workload("redis", [(REQUESTS, 50_000, 0.01)], (("clients", n),)) for n in ("50", "100")]


def row(analysis, environment, metric=0):
    return next(each for each in analysis.metrics[metric].comparisons if each.environment == environment)


def codes(comparison):
    return {remark.code for remark in comparison.remarks}


def test_a_known_cost_is_found_in_ten_blocks(run):
    analysis = analyse(run(costs={"bridge": 1.25, "host": 1.0}))
    throughput = analysis.metrics[0]
    assert throughput.headline and not analysis.metrics[1].headline
    assert 8.4e9 < throughput.baseline_value < 8.9e9
    bridge, host = row(analysis, "bridge"), row(analysis, "host")
    assert bridge.verdict == "different" and bridge.adjusted_p < 0.05 and not bridge.cost.exploratory
    assert bridge.cost.percent.low < 20 < bridge.cost.percent.high  # throughput divided by 1.25
    latency = row(analysis, "bridge", 1).cost.percent
    assert latency.low < 25 < latency.high  # lower is better: 25% more
    assert host.verdict == "equivalent"
    assert analysis.trust.trusted is True and 0 < analysis.trust.noise_floor < 0.03
    assert throughput.aa.environment == "native-again" and throughput.aa.adjusted_p is None


LOSSY = [Workload("udp", [(LOSS, 0.05, 2.0), (THROUGHPUT, 1e7, 0.001)])]
STEPPED = [Workload("redis", [(LATENCY, 0.055, 0.0)])]
SHARE = [Workload("cpu", [(LOSS, 50.0, 0.01)])]
BAD_CONTROL = {"costs": {"same": 1.0, "large": 1.5}, "aa_factor": 1.08}
NOT_PINNED = {"bridge/server": {"not honoured: pin": "no second CPU"}}


def lost(environment, *blocks):
    return {(block, environment): Outcome.DEADLINE for block in blocks}


@pytest.mark.parametrize(
    ("environment", "recipe", "verdict", "blocks", "has", "lacks"),
    [
        ("bridge", {"blocks": 1}, "inconclusive", 1, "one-round", ""),
        ("bridge", {"costs": {"bridge": 1.5}, "blocks": 6}, "different", 6, "exploratory", ""),
        ("bridge", {"costs": {"bridge": 63 / 55}, "workloads": STEPPED, "blocks": 3}, "inconclusive", 3, "holm", ""),
        ("large", BAD_CONTROL, "inconclusive", 10, "unproven", "holm"),
        ("large", BAD_CONTROL | {"workloads": SHARE}, "inconclusive", 10, "unproven", "holm"),
        ("same", BAD_CONTROL, "inconclusive", 10, "unproven", ""),
        ("host", {"blocks": 14, "failing": lost("host", 3, 7)}, "inconclusive", 12, "failed selected", ""),
        ("bridge", {"costs": {"bridge": 1.0, "host": 1.0}, "blocks": 14, "failing": lost("host", 3, 7)}, "equivalent",
         14, "", "selected"),
        ("host", {"failing": lost("host", 3)}, "equivalent", 9, "failed incomplete exploratory", "selected"),
        ("host", {"blocks": 14, "failing": lost("native", 3, 7)}, "inconclusive", 12, "selected", ""),
        ("host", {"blocks": 3, "failing": lost("host", 1, 2, 3)}, "inconclusive", 0, "no-rounds", ""),
        ("host", {"workloads": LOSSY}, "inconclusive", 10, "difference", ""),
        ("bridge", {"facts": NOT_PINNED}, "different", 10, "confounder", ""),
        ("host", {"facts": NOT_PINNED}, "equivalent", 10, "", "confounder"),
    ],
)  # fmt: skip
def test_a_comparison_has_a_verdict_and_the_remarks_that_limit_it(
    run, environment, recipe, verdict, blocks, has, lacks
):
    found = row(analyse(run(**{"costs": {"bridge": 1.25, "host": 1.0}} | recipe)), environment)
    assert (found.verdict, found.blocks) == (verdict, blocks)
    assert {*has.split()} <= codes(found) and not {*lacks.split()} & codes(found)


def test_large_costs_are_different_however_many_comparisons_there_are(run):
    """The exact p-value of ten blocks is at least 0.002: 60 of them could not pass Holm."""
    cells = [Workload(f"w{n}", [(REQUESTS, 1000, 0.01)]) for n in range(20)]
    analysis = analyse(run(costs={"a": 1.3, "b": 1.3, "c": 1.0}, workloads=cells, outputs=False))
    verdicts = [r.verdict for m in analysis.metrics for r in m.comparisons if r.environment in "ab"]
    assert len(verdicts) == 40 and set(verdicts) == {"different"}
    assert "different" not in {r.verdict for m in analysis.metrics for r in m.comparisons if r.environment == "c"}


def test_holm_takes_a_verdict_away_and_says_so(run):
    noisy = [Workload(f"w{n}", [(REQUESTS, 1000, 0.02)]) for n in range(15)]
    analysis = analyse(run(costs={"a": 1.02, "b": 1.0}, workloads=noisy, outputs=False))
    lost = [r for m in analysis.metrics for r in m.comparisons if "holm" in codes(r)]
    assert lost and all(r.cost.verdict == "different" and r.verdict == "inconclusive" for r in lost)


def p_value(sides, looks):
    scale = compare(*sides, better="lower").scale
    return family_p_value(Contrast.between("b", "a").effects(sides, scale), looks)


def test_holm_skips_what_has_no_cost():
    assert adjusted([0.01, None, 0.04]) == [0.02, None, 0.04]
    constant = ([1.0, 2.0], [1.0, 2.0])
    assert p_value(constant, 1) == 1.0


def test_a_shift_of_a_headline_is_not_lost_among_further_metrics(run):
    """With p = 0.001 and eighty-eight metrics in one family the control had passed."""
    further = [(Metric(f"metric {number}", "ms", "lower"), 1.0, 0.01) for number in range(30)]
    store = run(costs={}, workloads=[Workload("tcp", [(THROUGHPUT, 1e9, 0.01), *further])], blocks=20)
    assert analyse(store).trust.trusted is True
    values = [each for each in store.values() if each.metric == "throughput"]
    effects = [math.log(again / first) for first, again in zip(*arm_values(values, ARMS), strict=True)]
    error = stdev(effects) / math.sqrt(len(effects))
    shift = stats.t.isf(0.0005, len(effects) - 1) * error - fmean(effects)
    store.close()
    with sqlite3.connect(store.directory / DATABASE) as file:
        shifted = "(SELECT id FROM trial WHERE environment = 'native-again') AND metric = 'throughput'"
        file.execute(f"UPDATE measurement SET value = value * ? WHERE trial IN {shifted}", (math.exp(shift),))
    with RunStore(store.directory) as later:
        trust = analyse(later).trust
    assert trust.trusted is False and [each.metric for each in trust.shifted] == ["throughput"]
    effect = visible_effect(error_at(effects, 0.01), 20, 0.01)
    assert trust.visible_shift == pytest.approx(math.expm1(effect), rel=1e-6)


ARMS = ("native", "native-again")


def test_good_sessions_are_rarely_called_untrusted(run):
    cells = [Workload(f"w{n}", [(REQUESTS, 1000, 0.02)]) for n in range(10)]
    verdicts = [analyse(run(costs={}, workloads=cells, seed=seed, outputs=False)).trust.trusted for seed in range(8)]
    assert verdicts.count(False) == 0


def test_headlines_without_a_control_are_named_beside_the_trust(run):
    """The largest number of blocks of the A/A arm had spoken for all headlines."""
    both = [TCP, Workload("udp", [(REQUESTS, 1000, 0.01)])]
    store = run(costs={"host": 1.0}, workloads=both, absent={("udp", "native-again")})
    trust = analyse(store).trust
    assert trust.trusted is True and [each.label for each in trust.unchecked] == ["udp"]
    whole = run(costs={"host": 1.0}, workloads=both)
    assert analyse(whole).trust.unchecked == ()


def test_the_shift_that_the_check_finds_is_that_of_the_noisiest_headline(run):
    """It was the median's: a promise that the check does not keep in the other headlines."""
    noisy = [Workload(f"w{n}", [(REQUESTS, 1000, 0.01 * 4**n)]) for n in range(3)]
    analysis = analyse(run(costs={"host": 1.0}, workloads=noisy, blocks=20))
    worst = analysis.headlines[2].aa
    expected = math.expm1(visible_effect(error_at(worst.effects, 0.01 / 3), 20, 0.01 / 3))
    assert analysis.trust.visible_shift == pytest.approx(expected) and analysis.trust.visible_shifts == 3


def test_without_an_aa_arm_the_floor_is_not_known(run):
    analysis = analyse(run(costs={"host": 1.0}, aa=False))
    assert analysis.trust.trusted is None and analysis.trust.noise_floor is None
    assert analysis.metrics[0].aa is None


def test_no_trial_at_all(run):
    analysis = analyse(run(costs={"bridge": 1.25}, blocks=0))
    assert analysis.metrics == () and analysis.trials == () and analysis.labels == ("tcp",)
    assert analysis.trust.trusted is None


def test_only_failed_trials(run):
    failing = {(1, name): Outcome.PROGRAM_FAILED for name in ("native", "bridge", "native-again")}
    analysis = analyse(run(costs={"bridge": 1.25}, blocks=1, failing=failing))
    assert analysis.metrics == () and len(analysis.failed) == 3


def test_a_run_of_six_blocks_is_exploratory_and_not_of_few(run):
    analysis = analyse(run(costs={"bridge": 1.5}, blocks=6))
    assert analysis.exploratory and not analysis.few


def test_below_five_blocks_values_are_shown_and_no_verdict(run):
    analysis = analyse(run(costs={"bridge": 1.5}, blocks=4))
    bridge = row(analysis, "bridge")
    assert analysis.few and bridge.few and bridge.shown_as == "few"
    assert analysis.trust.noise_floor is None and len(analysis.block_values(analysis.metrics[0], "bridge")) == 4
    assert bridge.verdict == "inconclusive"


@pytest.mark.parametrize(("blocks", "least"), [(2, 0.5), (3, 0.25), (10, 2**-9)])
def test_identical_differences_get_the_sign_test(blocks, least):
    """A latency in histogram steps of 8 us: 55 -> 63 in every block."""
    sides = ([55.0] * blocks, [63.0] * blocks)
    assert p_value(sides, 1) == least
    assert p_value(sides, 8) == min(1, least / 0.7)
    rounded = ([55.0 * n for n in range(1, blocks + 1)], [63.0 * n for n in range(1, blocks + 1)])
    assert p_value(rounded, 1) == least
    counts = ([0.0] * blocks, [8.0] * blocks)
    assert p_value(counts, 1) == least


def test_differences_that_vary_have_no_floor():
    sides = ([100.0, 101.0, 102.0], [200.0, 202.1, 203.9])
    assert 0 < p_value(sides, 1) < 0.001


def test_what_takes_a_verdict_leaves_its_cost_and_p_value(run):
    large = row(analyse(run(**BAD_CONTROL)), "large")
    assert large.cost.verdict == "different" and large.adjusted_p < 0.05
    for environment in ("host", "native"):
        host = row(analyse(run(costs={"host": 1.0}, blocks=14, failing=lost(environment, 3, 7))), "host")
        assert host.cost.equivalent
    stepped = row(analyse(run(costs={"bridge": 63 / 55}, workloads=STEPPED, blocks=3)), "bridge")
    assert excludes_no_cost(stepped.cost) and stepped.adjusted_p == 0.25
    lossy = analyse(run(costs={"bridge": 1.0}, workloads=LOSSY))
    assert row(lossy, "bridge").cost.scale == "difference" and lossy.metrics[0].noise_floor is None


def test_medians_come_from_the_blocks_of_the_cost(run):
    store = run(costs={"bridge": 1.25}, blocks=3, failing={(2, "bridge"): Outcome.DEADLINE})
    bridge, report = row(analyse(store), "bridge"), analyse(store).metrics[0]
    seen = {(v.block, v.environment): v.value for v in store.values() if v.metric == "throughput"}
    assert bridge.baseline_value == pytest.approx((seen[1, "native"] + seen[3, "native"]) / 2)
    assert bridge.value == pytest.approx((seen[1, "bridge"] + seen[3, "bridge"]) / 2)
    assert report.baseline_value == sorted(seen[block, "native"] for block in (1, 2, 3))[1]


def test_a_repetition_does_not_replace_a_good_attempt(run):
    once = analyse(run(costs={"bridge": 1.25}, blocks=3)).metrics[0]
    twice = analyse(run(costs={"bridge": 1.25}, blocks=3, again=(1, 2, 3))).metrics[0]
    assert twice.baseline_value == once.baseline_value
    assert [(r.value, r.baseline_value) for r in twice.comparisons] == [
        (r.value, r.baseline_value) for r in once.comparisons
    ]


@pytest.mark.parametrize("workloads", [1, 2, 3, 4])
def test_the_noise_floor_and_its_range_are_of_one_metric(run, workloads):
    """Of an even number of headlines the floor was between two metrics, and the range that of another one."""
    noisy = [Workload(f"w{n}", [(REQUESTS, 1000, 0.01 * 2**n)]) for n in range(workloads)]
    analysis = analyse(run(costs={"host": 1.0}, workloads=noisy))
    trust = analysis.trust
    (middle,) = [each for each in analysis.headlines if each.noise == trust.noise]
    assert middle.noise_floor == trust.noise_floor
    assert sorted(each.noise_floor for each in analysis.headlines)[workloads // 2] == trust.noise_floor


def test_swept_levels_are_compared_apart(run):
    analysis = analyse(run(costs={"bridge": 1.25}, workloads=REDIS))
    assert [m.label for m in analysis.metrics] == ["redis (clients=50)", "redis (clients=100)"]
    assert all(m.headline for m in analysis.metrics)


def test_adaptive_runs_use_the_wider_interval(run):
    fixed = row(analyse(run(costs={"bridge": 1.25})), "bridge")
    adaptive = row(analyse(run(costs={"bridge": 1.25}, repetitions=Repetitions(target="2%"))), "bridge")
    assert adaptive.cost.high - adaptive.cost.low > fixed.cost.high - fixed.cost.low
    assert "incomplete" not in codes(adaptive)


def test_blocks_that_were_added_after_looking_are_a_further_look(run):
    planned, store = run(costs={"bridge": 1.25}, blocks=20), run(costs={"bridge": 1.25}, blocks=20)
    with RunStore(store.directory, writable=True) as kept:
        kept.set_info("repetitions", Repetitions(blocks=10).model_dump_json())
        kept.set_info("extensions", json.dumps([asdict(RunExtension(10, 20, 10, 1e9))]))
    with RunStore(store.directory) as kept:
        before, after = analyse(planned), analyse(kept)
    narrow, wide = row(before, "bridge"), row(after, "bridge")
    assert wide.cost.high - wide.cost.low > narrow.cost.high - narrow.cost.low
    assert wide.cost.p_value > narrow.cost.p_value and wide.adjusted_p > narrow.adjusted_p
    assert "extended" in codes(wide) and "extended" not in codes(narrow) and "incomplete" not in codes(wide)
    assert [each.code for each in after.confounders] == ["extended"] and before.confounders == ()
    assert (before.confidence, after.confidence) == (0.95, pytest.approx(0.9825)), "the level of the intervals shown"


def test_of_an_extended_run_it_is_said_how_many_blocks_ran_and_the_price_before(run):
    """A report said that a run was extended to 371 blocks, of which 337 ran."""
    planned = run(costs={"bridge": 1.0}, blocks=20, workloads=[Workload("tcp", [(THROUGHPUT, 1e9, 0.06)])])
    with RunStore(planned.directory, writable=True) as kept:
        kept.set_info("repetitions", Repetitions(blocks=10).model_dump_json())
        kept.set_info("extensions", json.dumps([asdict(RunExtension(10, 30, 10, 1e9))]))
    with RunStore(planned.directory) as kept:
        after = analyse(kept)
    (remark,) = after.confounders
    assert isinstance(remark, Extended) and (remark.planned, remark.rounds, remark.by_gate) == (10, 20, False)


def test_each_further_look_spends_less_of_the_error(run):
    store = run(costs={"bridge": 1.25}, blocks=40)
    widths = []
    for extensions in ([(10, 40)], [(10, 20), (20, 40)], [(10, 20), (20, 30), (30, 40)]):
        with RunStore(store.directory, writable=True) as kept:
            kept.set_info("repetitions", Repetitions(blocks=10).model_dump_json())
            changes = [asdict(RunExtension(before, after, before, 1e9)) for before, after in extensions]
            kept.set_info("extensions", json.dumps(changes))
        with RunStore(store.directory) as kept:
            analysis = analyse(kept)
        assert looks_share(analysis.looks) == 0.7 * 0.5 ** len(extensions)
        widths.append(row(analysis, "bridge").cost.high - row(analysis, "bridge").cost.low)
    assert widths == sorted(set(widths))


def _noted(store, *, finished: bool):
    with RunStore(store.directory, writable=True) as kept:
        kept.set_info("repetitions", Repetitions(blocks=20).model_dump_json())
        (note_end if finished else note_begin)(kept)
    with RunStore(store.directory) as kept:
        return analyse(kept)


def test_a_run_that_did_not_come_to_its_end_may_be_looked_at_in_every_block(run):
    store = run(costs={"bridge": 1.25}, blocks=12)
    stopped, ended = _noted(store, finished=False), _noted(store, finished=True)
    assert "unfinished" in codes(row(stopped, "bridge")) and stopped.looks == Looks(1, interim=True)
    assert [each.code for each in stopped.confounders] == ["unfinished"]
    assert "unfinished" not in codes(row(ended, "bridge")) and ended.looks == Looks(1)
    widths = [row(each, "bridge").cost.high - row(each, "bridge").cost.low for each in (stopped, ended)]
    assert widths[0] > widths[1]


def test_a_look_makes_no_shift_of_the_control_pass(run):
    store = run(costs={"bridge": 1.25}, aa_factor=1.012, blocks=20)
    ended, stopped = _noted(store, finished=True), _noted(store, finished=False)
    assert ended.trust.trusted is False and stopped.trust.trusted is False
    assert stopped.control_looks == ended.looks


@pytest.mark.parametrize("blocks", [6, 7, 9])
def test_few_blocks_find_a_large_shift_of_the_control(run, blocks: int):
    """No exact p-value of so few is below 1%: native runs that took three times as long passed."""
    analysis = analyse(run(costs={"bridge": 1.0}, aa_factor=3.0, blocks=blocks))
    assert analysis.trust.trusted is False


def _changed(store, *changes: RunExtension, gates: tuple[GateLook, ...] = ()):
    with RunStore(store.directory, writable=True) as kept:
        kept.set_info("repetitions", Repetitions(blocks=20).model_dump_json())
        kept.set_info("extensions", json.dumps([asdict(each) for each in changes]))
        kept.set_info(GATE_LOOKS, gate_looks_text(gates))
        note_end(kept)
    with RunStore(store.directory) as kept:
        return plan_of(kept)


def test_a_change_counts_by_what_came_of_it(run):
    store = run(costs={"bridge": 1.25}, blocks=12)
    added_nothing = _changed(store, RunExtension(12, 40, 12, 1e9))
    assert (added_nothing.looks, added_nothing.changes) == (Looks(1), ())
    too_early = _changed(store, RunExtension(3, 12, 3, 1e9))
    assert too_early.looks == Looks(1)
    cut_short = _changed(store, RunExtension(20, 12, 12, 1e9))
    assert cut_short.looks == Looks(1, interim=True) and not cut_short.unfinished
    assert cut_short.next_looks == Looks(1, 1), "whoever adds blocks now changes it at the same blocks"


def test_a_gates_own_look_takes_nothing_back_of_a_change(run):
    """A gate that was asked twice about a shortened run passed the second time."""
    store, cut = run(costs={"bridge": 1.25}, blocks=12), RunExtension(20, 12, 12, 1e9)
    first, again = (_changed(store, cut, gates=looks) for looks in ((), (GateLook(blocks=12, share=0.8, open=()),)))
    assert first.looks_beside_gates == again.looks_beside_gates == Looks(1, interim=True)
    asked = (GateLook(blocks=8, share=0.1, open=(), until=12), GateLook(blocks=12, share=0.1, open=()))
    assert _changed(store, RunExtension(8, 12, 8, 1e9), gates=asked).looks_beside_gates == Looks(1)
    over = (GateLook(blocks=8, share=0.1, open=(), until=20), GateLook(blocks=12, share=0.1, open=()))
    ended = _changed(store, RunExtension(8, 20, 8, 1e9), RunExtension(20, 12, 12, 1e9), gates=over)
    assert ended.looks_beside_gates == Looks(1)


def _steal(share: float) -> Flag:
    return Flag(FlagCode.STEAL, figures={"share": share})


def test_trial_flags_are_counted_beside_the_number(run):
    flags = {
        (1, "bridge"): (_steal(0.03),),
        (2, "bridge"): (_steal(0.09), Flag(FlagCode.PROGRAM_ERRORS, figures={"count": 4})),
        (3, "host"): (Flag(FlagCode.LOAD, figures={"load": 5.2}),),
    }
    bridge = row(analyse(run(costs={"bridge": 1.25, "host": 1.0}, flags=flags)), "bridge")
    (steal,) = [each for each in bridge.remarks if each.code == "trial"]
    assert (steal.flag.code, steal.count, steal.trials) == (FlagCode.STEAL, 2, 10)
    assert "errors" in codes(bridge), "and the load of the other environment is not among them"


def test_rare_stalls_are_said_first(run):
    slowed = {(block, "bridge"): 3.0 for block in range(4, 31, 5)}
    analysis = analyse(run(costs={"bridge": 1.0}, blocks=30, slowed=slowed))
    latency = row(analysis, "bridge", 1)
    assert latency.cost.percent.estimate < 10 and {"stalls", "outliers"} <= codes(latency)
    assert latency.slow.slow == 6 and latency.slow.low < 0.2 < latency.slow.high


def test_a_mean_that_may_be_the_typical_cost_is_no_stall(run):
    slowed = {(3, "bridge"): 3.0, (8, "bridge"): 4.0}
    analysis = analyse(run(costs={"bridge": 1.0}, slowed=slowed))
    latency = row(analysis, "bridge", 1)
    assert latency.cost.disagreement > 0.3
    assert latency.cost.arithmetic.low < latency.cost.typical < latency.cost.arithmetic.high
    assert "outliers" in codes(latency) and "stalls" not in codes(latency)


@pytest.mark.parametrize(("centre", "told"), [(-3.7, True), (8.0, False)])
def test_memory_per_site_around_zero_is_below_what_can_be_resolved(run, centre: float, told: bool):
    memory = Workload("density", [(Metric("memory_per_site", "MiB", "lower"), centre, 0.01)])
    analysis = analyse(run(costs={"bridge": 1.0}, workloads=[memory]))
    remarks = [each for each in analysis.metrics[0].comparisons[0].remarks if isinstance(each, Unresolved)]
    assert remarks == ([Unresolved("native", 10, 10), Unresolved("bridge", 10, 10)] if told else [])


@pytest.mark.parametrize("blocks", [3, 10])
def test_only_an_environment_whose_memory_is_below_zero_is_not_resolved(run, blocks: int):
    memory = Workload("density", [(Metric("memory_per_site", "MiB", "lower"), 8.0, 0.01)])
    analysis = analyse(run(costs={"tiny": -1.0, "bridge": 1.2}, workloads=[memory], blocks=blocks))
    found = {row.environment: row for row in analysis.metrics[0].comparisons}
    assert found["tiny"].unresolved == ("tiny",) and found["bridge"].unresolved == ()


def test_a_cost_against_a_baseline_that_is_not_resolved_is_marked(run):
    memory = Workload("density", [(Metric("memory_per_site", "MiB", "lower"), -3.7, 0.01)])
    analysis = analyse(run(costs={"bridge": -3.0}, workloads=[memory]))
    (bridge,) = [row for row in analysis.metrics[0].comparisons if row.environment == "bridge"]
    assert bridge.unresolved == ("native",)


# -- what would have shown -------------------------------------------------------------------------


def test_beside_an_undecided_cost_stands_what_would_have_shown(run):
    noisy = [Workload("w", [(REQUESTS, 1000, 0.04)])]
    analysis = analyse(run(costs={"a": 1.0, "b": 1.0}, workloads=noisy, blocks=12))
    report = analysis.metrics[0]
    undecided = [each for each in report.comparisons if each.verdict == "inconclusive" and not each.aa]
    assert undecided
    for each in undecided:
        assert each.visible.cost > 100 * report.noise_floor / (1 + report.noise_floor), "no less than the noise floor"
        assert each.visible.blocks > 12
        block_s = 4 * 2.0  # native, a, b and the A/A arm: 1.2 s each, one every 2 s
        assert each.visible.seconds == pytest.approx((each.visible.blocks - 12) * block_s)
    (control,) = [each for each in report.comparisons if each.aa]
    assert control.visible is None


def test_what_is_decided_needs_no_more_blocks(run):
    analysis = analyse(run(costs={"bridge": 1.25}))
    bridge = row(analysis, "bridge")
    assert bridge.verdict == "different" and bridge.visible.blocks is None
    assert row(analyse(run(costs={"bridge": 1.25}, blocks=3)), "bridge").visible is None


def test_the_level_that_a_comparison_has_to_meet():
    """Those that are significant are rejected before it, and count no more."""
    assert holm_levels([0.2, None, 0.4]) == [0.025, None, 0.025]
    assert holm_levels([0.001, 0.4, 0.6]) == pytest.approx([0.05 / 3, 0.025, 0.025])
    assert holm_levels([]) == []


def test_resource_use_that_differs_no_more_than_the_aa_arm_is_never_different(run):
    """CPU time per unit of work differs between two sites of the same for a whole session."""
    cpu = Metric("cpu_server_per_gbit", "s/Gbit", "lower")
    costs = {f"e{number}": 1.004 + 0.001 * number for number in range(8)}
    loud = Workload("w", [(REQUESTS, 1000, 0.01), (cpu, 1.0, 0.01)])
    analysis = analyse(run(costs=costs, workloads=[loud], blocks=20))
    report = analysis.metrics[1]
    rows = [each for each in report.comparisons if not each.aa]
    within = [each for each in rows if excludes_no_cost(each.cost) and within_noise(each.cost, report.aa.cost)]
    assert report.resource_use and analysis.trust.trusted and within and all(each.visible is None for each in rows)
    assert "different" not in {each.verdict for each in within}
    assert all("noise" in codes(each) for each in within if not each.cost.equivalent)
