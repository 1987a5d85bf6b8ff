"""A run that is asked for more blocks while its sites are open."""

from collections import Counter
from pathlib import Path

import pytest

from weighbridge.errors import RunDirectoryError
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.decisions import GateLook, gate_looks_of, gate_looks_text
from weighbridge.model.level import Level
from weighbridge.runner.stopper import BlockExtender
from weighbridge.store.extensions import extensions
from weighbridge.store.reader import GATE_LOOKS
from weighbridge.store.run import RunStore

from .world import Told, World, finished, study
from .world import go as run_session

SOLO = "cpu: {kind: fake-solo}"
CPU = CellId("cpu", Level())
ONE, TWO = ArmId(CPU, "one"), ArmId(CPU, "two")


def go(path: Path, made, extender: BlockExtender | None) -> Told:
    return run_session(path, made, extender=extender)


def blocks(path: Path) -> dict[str, int]:
    return dict(Counter(trial.environment for trial in finished(path)))


def asking(*looks: int, open_: tuple[ArmId, ...] = (), asked: list[int]):
    """Asks for these numbers of blocks, one after the other, for the comparisons that are ``open_``."""

    def total_blocks(store: RunStore) -> int | None:
        done = max(trial.block for trial in store.trials())
        asked.append(done)
        following = next((look for look in looks if look > done), None)
        look = GateLook(blocks=done, share=0.1, open=open_, until=following)
        store.set_info(GATE_LOOKS, gate_looks_text((*store.gate_looks(), look)))
        return following

    return total_blocks


def test_blocks_are_added_as_long_as_they_are_asked_for(world: World, tmp_path: Path):
    asked: list[int] = []
    go(tmp_path, study(SOLO, blocks=3), BlockExtender(60.0, asking(5, 8, asked=asked)))
    assert asked == [3, 5, 8] and set(blocks(tmp_path).values()) == {8}
    assert world.left() == []
    with RunStore(tmp_path / "run") as store:
        assert [(each.planned, each.blocks, each.after) for each in extensions(store.info())] == [
            (3, 5, 3),
            (5, 8, 5),
        ]


def test_only_what_is_open_takes_part_with_the_baseline_and_its_aa_arm(world: World, tmp_path: Path):
    asked: list[int] = []
    go(tmp_path, study(SOLO, blocks=3), BlockExtender(60.0, asking(5, 8, open_=(TWO,), asked=asked)))
    assert blocks(tmp_path) == {"native": 8, "native-again": 8, "two": 8, "one": 3}


def test_the_schedule_is_the_same_as_of_a_run_that_has_so_many_blocks(world: World, tmp_path: Path):
    asked: list[int] = []
    extended = go(tmp_path, study(SOLO, blocks=3), BlockExtender(60.0, asking(5, asked=asked)))
    whole = go(tmp_path / "whole", study(SOLO, blocks=5), None)
    assert extended.begun == whole.begun


def test_an_interrupted_extension_goes_on_with_what_was_open(world: World, tmp_path: Path):
    made = study(SOLO, blocks=3)
    go(tmp_path, made, None)
    with RunStore(tmp_path / "run", writable=True) as store:
        look = GateLook(blocks=3, share=0.1, open=(ONE,), until=6)
        store.set_info(GATE_LOOKS, gate_looks_text((look,)))
        BlockExtender(1.0, lambda _: 6).extended(made, store)
    go(tmp_path, made, None)
    assert blocks(tmp_path) == {"native": 6, "native-again": 6, "one": 6, "two": 3}


def test_an_adaptive_run_goes_on_although_its_target_is_reached(world: World, tmp_path: Path):
    made = study(SOLO, repetitions="target: 2%, budget: 1h")
    asked: list[int] = []
    go(tmp_path, made, BlockExtender(60.0, asking(14, open_=(TWO,), asked=asked)))
    assert blocks(tmp_path) == {"native": 14, "native-again": 14, "two": 14, "one": 10}


@pytest.mark.parametrize("text", ["{}", '[{"blocks": 3}]', '[{"blocks": 3, "share": 2, "open": []}]', "nonsense"])
def test_damaged_looks_are_told(world: World, tmp_path: Path, text: str):
    go(tmp_path, study(SOLO, blocks=2), None)
    with RunStore(tmp_path / "run", writable=True) as store:
        store.set_info(GATE_LOOKS, text)
        with pytest.raises(RunDirectoryError, match="gate_looks"):
            store.gate_looks()


def test_looks_are_kept_as_they_are():
    look = GateLook(blocks=10, share=0.04, open=(TWO,), until=16)
    assert gate_looks_of(gate_looks_text((look,))) == (look,)
    assert look.goes_on(TWO) and not look.goes_on(ONE)
    assert look.model_copy(update={"open": ()}).goes_on(ONE)
    assert not look.model_copy(update={"until": None}).goes_on(TWO)
