"""`weighbridge explain` of a run that explains a cost: what showed something is switched in every combination."""

import json
from pathlib import Path

import pytest

from cli.command_line import Weighbridge, one_sentence
from documents import fits
from report.made_up_runs import REQUESTS, Recipe, Workload, make_run, two_versions
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.model.explained import PLACEBO, DescribedMechanism, Explains
from weighbridge.model.stored_study import secrets_of
from weighbridge.store.run import RunStore
from weighbridge.study.loader import load

STUDY = """study: why-first
question: Why does bridge cost what it does, in redis?
baseline: native
explain: [bridge]
environments:
  native: {kind: native}
  bridge: {kind: docker, network: bridge, publish: true}
workloads:
  redis: {kind: redis-benchmark, requests: 20000}
"""
OFF = {
    "address-translation": (1.2, ("address-translation",)),
    "seccomp": (1.25, ("seccomp",)),
    "own-network": (1.2, ("address-translation", "own-network")),
}


def first_pass(directory: Path, whole: float) -> Path:
    """A run in which each mechanism is off in an arm of its own, of a bridge that costs so much."""
    costs = {f"bridge-without-{kind}": whole / factor for kind, (factor, _) in OFF.items()}
    explains = {f"bridge-without-{kind}": Explains(environment="bridge", off=off) for kind, (_, off) in OFF.items()}
    mechanisms = tuple(
        DescribedMechanism(
            kind=kind, environment="bridge", title=kind, switched="", remedy="", source="", off_with=off[:-1]
        )
        for kind, (_, off) in OFF.items()
    )
    made = Recipe(
        costs={"bridge": whole, **costs}, explains=explains, mechanisms=mechanisms, blocks=12,
        workloads=[Workload("redis", [(REQUESTS, 1000, 0.004)])],
    )  # fmt: skip
    make_run(directory, made).close()
    with RunStore(directory, writable=True) as store:
        store.set_info("study_text", STUDY)
    return directory


def test_what_showed_a_cost_is_switched_in_every_combination(weighbridge: Weighbridge, tmp_path: Path):
    run, saved = first_pass(tmp_path / "run", 1.3), tmp_path / "second.yaml"
    said = weighbridge("explain", run, "--save", saved)
    assert said.code == 0 and "in every combination: seccomp, address-translation" in said.out, said
    study = load(str(saved))
    assert study.file.study == "why-first" and study.file.explain == {"bridge": ("seccomp", "address-translation")}
    assert len([arm for arm in study.arms if arm.explains is not None]) == 3


def test_values_of_variables_are_not_in_the_next_study(weighbridge: Weighbridge, tmp_path: Path):
    """An older version stored them all."""
    run, saved = first_pass(tmp_path / "run", 1.3), tmp_path / "second.yaml"
    own = "publish: true, userland: {kind: host, env: {PATH: /bin, THREADS: canary}}}"
    with RunStore(run, writable=True) as store:
        store.set_info("study_text", STUDY.replace("publish: true}", own))
        store._db.execute("DELETE FROM run WHERE key = 'secrets'")
    said = weighbridge("explain", run, "--save", saved)
    assert said.code == 0, said
    study = load(str(saved))
    assert "canary" not in study.text and secrets_of(study) == ("environments.bridge.userland.THREADS",)


@pytest.mark.parametrize("kinds", [("seccomp",), ()])
def test_with_fewer_than_two_nothing_is_left_to_tell(
    weighbridge: Weighbridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...]
):
    for kind in {*OFF} - {*kinds}:
        monkeypatch.setitem(OFF, kind, (1.0, OFF[kind][1]))
    said = weighbridge("explain", first_pass(tmp_path / "run", 1.3), "--save", tmp_path / "second.yaml")
    assert said.code == 1 and not (tmp_path / "second.yaml").exists()


def test_a_placebo_is_part_of_the_next_study(weighbridge: Weighbridge, tmp_path: Path):
    run, saved = first_pass(tmp_path / "run", 1.3), tmp_path / "second.yaml"
    said = weighbridge("explain", run, "--placebo", "--save", saved, "--json")
    fits(SchemaDocument.FILES, document := json.loads(said.out))
    assert said.code == 0 and document["files"] == [str(saved)], said
    study = load(str(saved))
    assert study.file.placebo and "bridge-placebo" in {arm.name for arm in study.arms}
    planned = json.loads(weighbridge("plan", saved, "--json").out)
    (arm,) = (each for each in planned["environments"] if each["off"] == [PLACEBO])
    assert arm["explains"] == "bridge" and PLACEBO not in {each["kind"] for each in planned["mechanisms"]}


def test_the_difference_of_two_versions_is_not_explained(weighbridge: Weighbridge, tmp_path: Path):
    make_run(tmp_path / "run", Recipe(**two_versions())).close()
    one_sentence(weighbridge("explain", tmp_path / "run", "--save", tmp_path / "why.yaml"), 2)
    assert not (tmp_path / "why.yaml").exists()
