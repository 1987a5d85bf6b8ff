"""Blocks between two looks: time that is short goes to where it narrows most, and a continued run has the same."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from weighbridge.errors import Interrupted, RunDirectoryError
from weighbridge.model.decisions import BlockSchedule, block_schedules_text
from weighbridge.model.study import Cell
from weighbridge.runner import precision
from weighbridge.runner.estimate import TimeLeft
from weighbridge.runner.precision import BlockSchedules, PrecisionStatus
from weighbridge.store.reader import ALLOTMENTS
from weighbridge.store.run import RunStore

from .world import Act, Told, World, study, usual
from .world import go as run_session

BOTH = "net: {kind: fake}, cpu: {kind: fake-solo}"
SHORT = "target: 0.1%, within: 1h, min: 10, max: 17"


@pytest.fixture(autouse=True)
def _noisy(world: World) -> None:
    chance = random.Random(1)

    def act(site, command) -> Act:
        noise = Act(stdout=repr(100 * chance.lognormvariate(0, 0.3)).encode())
        return usual(site, command) if command.argv[0] == "server" else noise

    world.act = act


def go(path: Path, told: Told) -> list[tuple[str, int]]:
    """Run it or go on; gives workload and block of the native trials."""
    run_session(path, study(BOTH, repetitions=SHORT), told)
    with RunStore(path / "run") as store:
        return [(each.workload, each.block) for each in store.trials() if each.environment == "native"]


def of_seconds(made, **seconds: float) -> TimeLeft:
    return TimeLeft(made, lambda cell: seconds[cell.workload])


def wide(predicted: int | None = 400, width: float = 0.2) -> list[PrecisionStatus]:
    return [
        PrecisionStatus(cell, name, width, False, predicted, blocks=10, target=0.02)
        for cell in ("net", "cpu")
        for name in ("one", "two")
    ]


def everything(cell: Cell) -> list[str]:
    return ["native", "native-again", "one", "two"]


@pytest.mark.parametrize(
    ("left_s", "net", "cpu"),
    [(1e6, 28, 28), (320.0, 3, 28), (0.0, 28, 28)],
)
def test_the_slow_ones_take_part_in_fewer_blocks(tmp_path: Path, world: World, left_s: float, net: int, cpu: int):
    """Ten blocks of net took 160 s, those of cpu 40 s: of 320 s more net has 100 s, so that both come to 260 s."""
    made = study(BOTH, repetitions="target: 2%, within: 1h")
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(made, {"run_id": "0123456789ab"})
        shares = BlockSchedules(made, store)
        times = of_seconds(made, net=4.0, cpu=1.0)
        found = shares.decide((10, 38), wide(width=0.6), everything, times, left_s)
        assert [(each.workload, each.after, each.until) for each in store.block_schedules()] == [
            ("net", 10, 38), ("cpu", 10, 38),
        ]  # fmt: skip
        assert [each.blocks for each in store.block_schedules()] == [net, cpu]
        cells = {cell.workload: cell for cell in made.cells}
        for name, blocks in (("net", net), ("cpu", cpu)):
            taken = [block for block in range(11, 39) if shares.includes(cells[name], block)]
            assert len(taken) == blocks and taken[-1] == 38
            assert max((b - a for a, b in pairwise(taken)), default=1) <= 28 // blocks + 1
            assert all(shares.includes(cells[name], block) for block in (1, 10, 39)), "outside of what was shared"
        expected = {each.cell: each.expected for each in found}
        assert (expected["net"] is None) == (left_s > 1e5)
        if left_s == 320:
            assert expected["net"] > expected["cpu"] > (0.0, 0.0)  # type: ignore[operator]
        again = shares.decide((10, 38), wide(width=0.9), everything, times, 1.0)
        assert [each.blocks for each in store.block_schedules()] == [net, cpu] and all(
            each.expected for each in again
        )


def test_what_has_left_or_was_given_up_gets_nothing(tmp_path: Path, world: World):
    made = study(BOTH, repetitions="target: 2%, within: 1h")
    statuses = [
        PrecisionStatus("net", "one", 0.01, True, 10, blocks=10),
        PrecisionStatus("net", "two", math.inf, False, None),
        PrecisionStatus("cpu", "one", 0.2, False, 400, blocks=10, target=0.02),
    ]  # fmt: skip
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(made, {"run_id": "0123456789ab"})
        found = BlockSchedules(made, store).decide(
            (10, 13), statuses, lambda cell: ["native", "one"], of_seconds(made, net=1.0, cpu=1.0), 60.0
        )
        assert [each.workload for each in store.block_schedules()] == ["cpu"]
        assert [each.expected is None for each in found] == [True, True, False]


def fewer(further: Sequence[int], contenders: object, blocks: int) -> list[int]:
    return [1, blocks]


def test_a_continued_run_has_the_same_schedule(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(precision, "shared", fewer)
    whole = go(tmp_path / "whole", Told())
    blocks = {name: [block for workload, block in whole if workload == name] for name in ("net", "cpu")}
    assert blocks == {"net": [*range(1, 11), 13, 17], "cpu": [*range(1, 18)]}
    for at in (11, 13, 16):

        def interrupt(trial, at: int = at) -> None:
            if trial.block == at:
                raise Interrupted(2)

        path = tmp_path / str(at)
        monkeypatch.setattr(precision, "shared", fewer)
        with pytest.raises(Interrupted):
            go(path, Told(at_begin=interrupt))
        if at == 16:
            monkeypatch.setattr(precision, "shared", lambda further, contenders, blocks: [blocks, blocks])
        assert Counter(go(path, Told())) == Counter(whole)


def test_what_is_left_counts_what_takes_part(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(precision, "shared", fewer)
    told = Told()
    go(tmp_path, told)
    assert told.counts[-1] == (4 * (12 + 17) - 1, 4 * (12 + 17))


@pytest.mark.parametrize(
    "text",
    [
        "no JSON", "[1]",
        '[{"after": 10, "until": 10, "workload": "net", "level": "{}", "blocks": 0}]',
        '[{"after": 10, "until": 12, "workload": "net", "level": "{}", "blocks": 3}]',
    ],
)  # fmt: skip
def test_damaged_ones_are_told(world: World, tmp_path: Path, text: str):
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(study(BOTH, repetitions=SHORT), {"run_id": "0123456789ab"})
        store.set_info(ALLOTMENTS, text)
        with pytest.raises(RunDirectoryError, match="allotments"):
            store.block_schedules()


def test_they_are_read_as_they_were_kept(world: World, tmp_path: Path):
    made = BlockSchedule(after=10, until=13, workload="net", level="{}", blocks=1)
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(study(BOTH, repetitions=SHORT), {"run_id": "0123456789ab"})
        store.set_info(ALLOTMENTS, block_schedules_text([made]))
        assert store.block_schedules() == (made,)
        assert [made.includes(block) for block in (11, 12, 13)] == [False, False, True]
