"""Fleets: what is read of each run, which runs count, which machines and pairs are odd, and what changed."""

import lzma
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from report.made_up_fleets import RECIPE, make_fleet, make_pairs, make_unit, new_fleet, rounds
from report.made_up_runs import LATENCY, THROUGHPUT, Recipe, Workload
from sentences import assert_sentence, raises_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.errors import RunDirectoryError
from weighbridge.features.fleets.analysis import WhyLeftOut, WhyNotCounted, read_fleet
from weighbridge.features.fleets.changes import compare_fleets, controls, effect_name
from weighbridge.features.fleets.text import why_left_out
from weighbridge.features.fleets.unit import Purpose, unit_of
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Outcome
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.store.unpacking import ENDING

NOISY = [Workload("tcp", [(THROUGHPUT, 8.66e9, 0.02), (LATENCY, 0.4, 0.05)])]


@pytest.fixture(scope="module")
def singles(tmp_path_factory):
    facts = {"n3": {"firmware": "1.2"}, "n7": {"frequency governor": "powersave"}}
    folder = tmp_path_factory.mktemp("singles") / "fleet"
    return make_fleet(folder, 12, odd={"n3": 1.25}, slow={"n7": 1.3}, facts=facts)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs") / "fleet"
    alone = [("n1", "n2"), ("n2", "n3"), ("n6", "n7")]
    return make_pairs(
        folder, rounds(10, 4), slow={"n5": 1.3}, bad={("n8", "n9"): 1.4}, alone=alone, together=1.15,
        facts={"n5": {"firmware": "1.2"}},
    )  # fmt: skip


def cost_of(fleet, *, own: bool = False):
    return next(each for each in fleet.metrics if each.is_own_value is own)


# -- what is read of a run -----------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [4, 8, 12])
def test_each_run_is_read_as_its_own_report_has_it(tmp_path, blocks):
    """Effects, and whether it is trusted: also where the A/A arm is near to what makes a session untrusted."""
    untrusted = 0
    for number, shift in enumerate((1.0, 1.01, 1.02, 1.03, 1.05, 1.3)):
        recipe = replace(RECIPE, workloads=NOISY, blocks=blocks, aa_factor=shift)
        folder = new_fleet(tmp_path / str(number))
        for seed in range(4):
            make_unit(folder, f"n{seed}", replace(recipe, seed=seed), [f"n{seed}"], {})
        for run in read_fleet(tmp_path / str(number)).runs:
            with RunStore(folder / run.name) as store:
                analysis = analyse(store)
            assert run.trust is analysis.trust.reason and run.trusted is analysis.trust.trusted
            assert [each.metric for each in run.shifted] == [each.metric for each in analysis.trust.shifted]
            untrusted += run.trusted is False
            for report in analysis.headlines:
                key = report.metric_id
                assert run.own_values[key] == analysis.block_values(report, "native")
                for row in report.comparisons:
                    mine = run.sides[key, row.environment]
                    assert [*zip(*mine, strict=True)] == [(pair.baseline, pair.value) for pair in row.pairs]
    assert untrusted >= 4 if blocks > 6 else untrusted == 0


@pytest.mark.parametrize("name", ["first-look", "docker-networks"])
def test_a_real_run_is_read_as_its_own_report_has_it(finished_run, name):
    of_run = finished_run(name)
    fleet = read_fleet(of_run.store.directory)
    (run,) = fleet.runs
    assert run.trust is of_run.analysis.trust.reason
    assert run.blocks == max(row.blocks for each in of_run.analysis.headlines for row in each.comparisons)
    assert {key.metric for key in run.reports} == {each.metric for each in of_run.analysis.headlines}
    hidden = {
        (each.label, row.environment)
        for each in of_run.analysis.headlines
        for row in each.comparisons
        if row.hidden and not row.aa
    }
    why = {(run.reports[key].label, name) for (key, name), why in run.no_cost.items() if why is WhyNotCounted.HIDDEN}
    assert hidden <= why


def test_blocks_that_broke_and_were_tried_again_are_not_counted(tmp_path):
    recipe = replace(RECIPE, breaking={(2, "bridge", NOISY[0].level): "refused"}, again=(2,))
    make_unit(new_fleet(tmp_path / "fleet"), "n1", recipe, ["n1"], {})
    (run,) = read_fleet(tmp_path / "fleet").runs
    with RunStore(tmp_path / "fleet" / "runs" / "n1") as store:
        (report,) = analyse(store).headlines
    (mine,) = [sides for (_, name), sides in run.sides.items() if name == "bridge"]
    assert len(mine[0]) == next(row.blocks for row in report.comparisons if row.environment == "bridge")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("n1", (Purpose.TOGETHER, ("n1",))),
        ("n1--n2", (Purpose.TOGETHER, ("n1", "n2"))),
        ("alone--n1--n2", (Purpose.ALONE, ("n1", "n2"))),
        ("again--n1", (Purpose.AGAIN, ("n1",))),
        ("alone--", (Purpose.ALONE, ("",))),
        ("a--b--c", (Purpose.TOGETHER, ("a--b--c",))),
    ],
)
def test_a_directory_says_what_its_run_is_for(name, expected):
    assert unit_of(name) == expected


def test_a_kept_file_counts_only_without_its_run(tmp_path):
    runs = make_fleet(tmp_path / "fleet", 1) / "runs"
    kept = f"kept{ENDING}"
    (runs / kept).write_bytes(lzma.compress((runs / "n1" / DATABASE).read_bytes()))
    fleet = read_fleet(runs)
    assert [run.name for run in fleet.runs] == ["n1"]
    (copy,) = fleet.left_out
    assert (copy.name, copy.reason, copy.detail) == (kept, WhyLeftOut.COPY, "n1")
    assert_sentence(why_left_out(copy, fleet))
    shutil.rmtree(runs / "n1")
    assert [run.name for run in read_fleet(runs).runs] == [kept]


# -- what is odd -----------------------------------------------------------------------------------


def test_odd_machines_are_found_with_what_sets_them_apart(singles):
    fleet = read_fleet(singles)
    cost, own = cost_of(fleet), cost_of(fleet, own=True)
    assert [each.machine for each in cost.outlier_machines] == ["n3"]
    assert [each.machine for each in own.outlier_machines] == ["n7"], "its cost is that of its peers"
    assert fleet.outlier_machines == ("n3", "n7") and fleet.margin == 0.03
    (firmware,) = fleet.unlike_peers("n3")
    assert (firmware.fact, firmware.value, firmware.peers, firmware.total) == ("firmware", "1.2", 11, 11)
    (governor,) = fleet.unlike_peers("n7")
    assert (governor.fact, governor.usual) == ("frequency governor", "")
    assert fleet.unlike_peers("n1") == (), "neither its name and id nor where it was placed"
    assert [each.fact for each in fleet.differing_facts] == ["firmware", "frequency governor"]
    assert [each.machine for each in cost.positions][-1] == "n3", "the worst is last"
    assert list(fleet.machines)[:3] == ["n1", "n2", "n3"] and list(fleet.machines)[-1] == "n12"


def test_a_distance_below_the_margin_is_not_odd(singles):
    assert read_fleet(singles, margin=0.5).outlier_machines == ()


def test_an_odd_machine_has_to_be_odd_among_all_metrics(singles):
    cost = cost_of(read_fleet(singles))
    (odd,) = cost.outlier_machines
    assert odd.adjusted_p is not None
    assert replace(cost, family=int(0.06 / odd.adjusted_p)).outlier_machines == ()


def test_a_slow_machine_and_a_bad_pair_are_told_apart(pairs):
    fleet = read_fleet(pairs)
    own = cost_of(fleet, own=True)
    assert fleet.size == 2 and len(fleet.machines) == 10
    assert [each.machine for each in own.outlier_machines] == ["n5"]
    assert [each.machines for each in own.outlier_pairs] == [("n8", "n9")]
    assert fleet.outlier_pairs == (("n8", "n9"),)
    assert [each.fact for each in fleet.unlike_peers("n5")] == ["firmware"]
    assert {each.reason for each in own.runs if each.run.purpose is Purpose.ALONE} == {WhyNotCounted.ALONE}


def test_a_second_measurement_of_a_machine_is_a_session(tmp_path):
    folder = make_fleet(tmp_path / "fleet", 5)
    make_unit(folder / "runs", "again--n2", replace(RECIPE, seed=77), ["n2"], {})
    cost = cost_of(read_fleet(folder))
    assert cost.fleet is not None and cost.fleet.spread.session is not None
    assert next(each for each in cost.fleet.machines if each.machine == "n2").runs == 2


def test_a_metric_without_ratios_is_told_in_its_unit(tmp_path):
    losses = [Workload("udp", [(replace_unit(THROUGHPUT), 3.0, 0.1)])]
    cost = cost_of(read_fleet(make_fleet(tmp_path / "fleet", 5, recipe=replace(RECIPE, workloads=losses))))
    assert cost.scale == "difference" and cost.fleet is not None
    assert 0.2 < cost.fleet.typical.estimate < 1.0


def replace_unit(metric):
    return type(metric)("loss", "%", "lower")


# -- which runs count ------------------------------------------------------------------------------


def test_untrusted_runs_take_no_part(tmp_path):
    folder = make_fleet(tmp_path / "fleet", 5)
    make_unit(folder / "runs", "n6", replace(RECIPE, aa_factor=1.3, costs={"bridge": 3.0}), ["n6"], {})
    fleet = read_fleet(folder)
    cost = cost_of(fleet)
    assert [each.name for each in fleet.untrusted] == ["n6"]
    assert "n6" not in {each.run.name for each in cost.counted}
    assert [each.reason for each in cost.runs if each.run.name == "n6"] == [WhyNotCounted.UNTRUSTED]


def test_few_blocks_and_hidden_costs_take_no_part(tmp_path):
    folder = make_fleet(tmp_path / "fleet", 4)
    make_unit(folder / "runs", "n5", replace(RECIPE, blocks=4), ["n5"], {})
    cable = {(block, name): (Flag(FlagCode.CABLE, "host a", {"share": 0.99, "rate": 1e8}),)
             for block in range(1, 11) for name in ("native", "bridge", "native-again")}  # fmt: skip
    make_unit(folder / "runs", "n6", replace(RECIPE, flags=cable), ["n6"], {})
    fleet = read_fleet(folder)
    whys = {each.run.name: each.reason for each in cost_of(fleet).runs if each.reason}
    assert whys == {"n5": WhyNotCounted.FEW, "n6": WhyNotCounted.HIDDEN}
    assert {each.run.name: each.reason for each in cost_of(fleet, own=True).runs if each.reason} == {
        "n5": WhyNotCounted.FEW
    }


def test_a_machine_without_the_workload_is_not_measured(tmp_path):
    folder = make_fleet(tmp_path / "fleet", 4)
    failing = {(block, "bridge"): Outcome.DEADLINE for block in range(1, 11)}
    make_unit(folder / "runs", "n5", replace(RECIPE, failing=failing), ["n5"], {})
    fleet = read_fleet(folder)
    assert [each.reason for each in cost_of(fleet).runs][-1] is WhyNotCounted.NO_VALUE
    assert next(each for each in fleet.runs if each.name == "n5").failed == 10


def test_what_cannot_be_read_or_is_of_another_study_is_left_out_and_named(tmp_path):
    with_mtu = [replace(RECIPE, options={"bridge": {"mtu": mtu}}) for mtu in (1500, 9000)]
    folder = make_fleet(tmp_path / "fleet", 4, recipe=with_mtu[0])
    runs = folder / "runs"
    make_unit(runs, "other", replace(RECIPE, study="elsewhere"), ["n5"], {})
    make_unit(runs, "settings", with_mtu[1], ["n6"], {})
    make_unit(runs, "workload", replace(RECIPE, notes={"tcp": "other"}), ["n7"], {})
    make_unit(runs, "environment", replace(RECIPE, costs={"host": 1.0}), ["n8"], {})
    make_unit(runs, "pair", RECIPE, ["n9", "n10"], {})
    (runs / "empty").mkdir()
    (runs / "n1.log").write_text("said")
    (runs / "garbage").mkdir()
    (runs / "garbage" / DATABASE).write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)
    damaged = make_unit(runs, "damaged", RECIPE, ["n11"], {})
    with closing(sqlite3.connect(damaged / DATABASE)) as file:
        file.execute("UPDATE trial SET outcome = 'quick' WHERE id = 3")
        file.commit()
    fleet = read_fleet(folder)
    assert [each.name for each in fleet.runs] == ["n1", "n2", "n3", "n4"]
    reasons = {each.name: each.reason for each in fleet.left_out}
    assert reasons == {
        "other": WhyLeftOut.OTHER_STUDY, "settings": WhyLeftOut.OTHER_SETTING, "workload": WhyLeftOut.OTHER_SETTING,
        "environment": WhyLeftOut.OTHER_SETTING, "pair": WhyLeftOut.OTHER_SIZE, "empty": WhyLeftOut.NO_RUN,
        "garbage": WhyLeftOut.UNREADABLE, "damaged": WhyLeftOut.UNREADABLE,
    }  # fmt: skip
    settings = {each.name: each.setting.setting for each in fleet.left_out if each.setting is not None}
    assert settings == {"settings": "mtu", "workload": "note", "environment": "environments"}


def test_a_machine_with_another_weighbridge_is_told(tmp_path):
    folder = make_fleet(tmp_path / "fleet", 5)
    for name in ("n1", "n2", "n3", "n4", "n5"):
        with RunStore(folder / "runs" / name, writable=True) as store:
            store.set_info("version", "0.2" if name == "n3" else "0.1")
    fleet = read_fleet(folder)
    [unlike] = fleet.unlike_peers("n3")
    assert (unlike.fact, unlike.value, unlike.usual) == ("Weighbridge", "0.2", "0.1") and not fleet.left_out


def test_two_machines_of_one_name_are_told_apart_by_their_ids(tmp_path):
    folder = make_fleet(tmp_path / "fleet", 3)
    make_unit(folder / "runs", "n9", RECIPE, ["n1"], {"n1": {"machine id": "another"}})
    names = list(read_fleet(folder / "runs").machines)
    assert len(names) == 4 and "n1 (another)" in names and "n1" not in names
    assert list(read_fleet(folder).machines) == ["n1", "n2", "n3", "n9"], "of a fleet its own names"


def test_machines_of_a_fleet_have_the_names_of_its_list_not_their_own(tmp_path):
    runs = new_fleet(tmp_path / "fleet")
    for name in ("a--b", "b--c", "again--a--c"):
        machines = name.removeprefix("again--").split("--")
        make_unit(runs, name, RECIPE, [f"wb-{each}" for each in machines], {})
    assert list(read_fleet(tmp_path / "fleet").machines) == ["a", "b", "c"]
    assert list(read_fleet(runs).machines) == ["wb-a", "wb-b", "wb-c"]


def test_runs_of_before_machines_were_named_are_named_by_their_directories(tmp_path):
    folder = new_fleet(tmp_path / "fleet")
    for name in ("a", "b", "c"):
        make_unit(folder, name, RECIPE, [name], {name: {"node": "", "machine id": ""}})
    assert list(read_fleet(tmp_path / "fleet").machines) == ["a", "b", "c"]


def test_a_folder_of_runs_needs_no_fleet_around_it(singles, tmp_path):
    assert list(read_fleet(singles / "runs").machines) == list(read_fleet(singles).machines)
    assert len(read_fleet(singles.parent).runs) == 12, "the only fleet in a folder"


def test_folders_that_are_no_fleet(singles, tmp_path):
    (tmp_path / "empty").mkdir()
    with raises_sentence(RunDirectoryError):
        read_fleet(tmp_path / "empty")
    for name in ("one", "two"):
        new_fleet(tmp_path / "both" / name)
    with raises_sentence(RunDirectoryError):
        read_fleet(tmp_path / "both")


def test_one_machine_has_costs_and_no_fleet(tmp_path):
    fleet = read_fleet(make_fleet(tmp_path / "fleet", 1))
    assert [each.fleet for each in fleet.metrics] == [None, None] and fleet.outlier_machines == ()


def test_a_study_of_the_baseline_alone_has_own_values(tmp_path):
    fleet = read_fleet(make_fleet(tmp_path / "fleet", 4, recipe=replace(RECIPE, costs={}, aa=False)))
    assert fleet.costs == () and fleet.own_values[0].fleet is not None
    assert {each.trusted for each in fleet.runs} == {None}


def test_runs_without_trials_are_no_failure(tmp_path):
    fleet = read_fleet(make_fleet(tmp_path / "fleet", 3, recipe=Recipe(costs={"bridge": 1.0}, blocks=0)))
    assert fleet.metrics == () and len(fleet.runs) == 3


# -- what changed ----------------------------------------------------------------------------------


def test_which_machines_changed_between_two_fleets(tmp_path):
    before = make_fleet(tmp_path / "before", 6, spread=0.0)
    facts = {"n2": {"kernel": "6.2", "machine id": "f" * 16}}
    after = make_fleet(tmp_path / "after", 7, odd={"n2": 1.2}, slow={"n4": 1.3}, spread=0.0, seed=2, facts=facts)
    compared = compare_fleets(read_fleet(after), read_fleet(before))
    cost, own = compared.shifts
    assert [row.machines for row in cost.different] == [("n2",)]
    assert [row.verdict for row in own.rows] == ["inconclusive"] * 6, "two sessions are not interleaved"
    assert [each.machine for each in cost.unlike] == ["n2"] and [each.machine for each in own.unlike] == ["n4"]
    assert (compared.only_before, compared.only_after) == ((), ("n7",))
    assert compared.other_ids == ("n2",)
    kernel = next(each for each in compared.facts("n2") if each.fact == "kernel")
    assert (kernel.fact, kernel.after) == ("kernel", "6.2")
    assert not cost.proven and not own.proven


def test_of_pairs_the_machine_is_named_that_changed_in_all_of_its_pairs(tmp_path):
    before = make_pairs(tmp_path / "before", rounds(8, 4))
    after = make_pairs(tmp_path / "after", rounds(8, 4), slow={"n4": 1.3}, bad={("n1", "n2"): 1.4})
    cost, own = compare_fleets(read_fleet(after), read_fleet(before)).shifts
    assert [effect_name(each) for each in own.unlike] == ["n4", "n1 → n2"] and cost.unlike == ()
    disjoint = [("n1", "n2"), ("n3", "n4"), ("n5", "n6"), ("n7", "n8"), ("n9", "n10")]
    before = make_pairs(tmp_path / "few before", disjoint)
    after = make_pairs(tmp_path / "few after", disjoint, slow={"n4": 1.3})
    _, own = compare_fleets(read_fleet(after), read_fleet(before)).shifts
    assert [effect_name(each) for each in own.unlike] == ["n3 → n4"]


@pytest.mark.parametrize(("slower", "unlike"), [(1.02, []), (1.1, ["n2"])])
def test_a_difference_that_changed_by_less_than_the_margin_is_like_the_others(tmp_path, slower, unlike):
    recipe = replace(RECIPE, workloads=[Workload("udp", [(replace_unit(THROUGHPUT), 3.0, 0.001)])])
    before = make_fleet(tmp_path / "before", 5, recipe=recipe, spread=0.0)
    after = make_fleet(tmp_path / "after", 5, recipe=recipe, spread=0.0, slow={"n2": slower})
    _, own = compare_fleets(read_fleet(after), read_fleet(before)).shifts
    assert own.metric.scale == "difference" and [effect_name(each) for each in own.unlike] == unlike


def test_one_run_has_its_own_margin_and_the_fleet_that_of_most(tmp_path):
    folder = make_fleet(tmp_path / "fleet", 3)
    with RunStore(folder / "runs" / "n1", writable=True) as store:
        store.set_info("equivalence", "0.0001")
    assert read_fleet(folder).margin == read_fleet(make_fleet(tmp_path / "usual", 3)).margin > 0.01


def test_a_change_of_all_machines_is_seen(tmp_path):
    before = make_fleet(tmp_path / "before", 6, spread=0.0)
    slower = replace(RECIPE, costs={"bridge": 1.5})
    after = make_fleet(tmp_path / "after", 6, spread=0.0, seed=2, recipe=slower)
    cost, own = compare_fleets(read_fleet(after), read_fleet(before)).shifts
    assert cost.proven and len(cost.different) == 6 and not own.proven
    assert cost.judged is not None and cost.judged.estimate == pytest.approx(0.223, abs=0.02)


def test_untrusted_runs_prove_no_change(tmp_path):
    before = make_fleet(tmp_path / "before", 3)
    after = make_fleet(tmp_path / "after", 3, recipe=replace(RECIPE, costs={"bridge": 1.9}, aa_factor=1.3), seed=2)
    cost = compare_fleets(read_fleet(after), read_fleet(before)).shifts[0]
    assert cost.different == () and cost.fleet is None


def test_fleets_that_cannot_be_compared(tmp_path, singles):
    other = make_fleet(tmp_path / "other", 2, recipe=replace(RECIPE, study="elsewhere"))
    with raises_sentence(RunDirectoryError):
        compare_fleets(read_fleet(singles), read_fleet(other))
    settings = make_fleet(tmp_path / "settings", 2, recipe=replace(RECIPE, notes={"tcp": "other"}))
    with raises_sentence(RunDirectoryError):
        compare_fleets(read_fleet(singles), read_fleet(settings))
    folder = new_fleet(tmp_path / "machines")
    for name in ("m1", "m2"):
        make_unit(folder, name, RECIPE, [name], {})
    with raises_sentence(RunDirectoryError):
        compare_fleets(read_fleet(singles), read_fleet(tmp_path / "machines"))


def test_pairs_of_one_round_that_disturb_one_another_are_seen(pairs, singles):
    cost, own = controls(read_fleet(pairs))
    assert own.metric.is_own_value and own.proven and not cost.proven
    assert own.judged is not None and own.judged.estimate == pytest.approx(0.14, abs=0.03)
    assert {row.machines for row in own.rows} == {("n1", "n2"), ("n2", "n3"), ("n6", "n7")}
    assert controls(read_fleet(singles)) == ()


def test_pairs_that_do_not_disturb_one_another(tmp_path: Path):
    alone = [("n1", "n2"), ("n2", "n3"), ("n3", "n4")]
    fleet = read_fleet(make_pairs(tmp_path / "fleet", rounds(6, 4), alone=alone))
    assert not any(each.proven for each in controls(fleet))
