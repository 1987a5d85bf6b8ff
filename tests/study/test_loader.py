"""Good studies: defaults, sweeps, the A/A arm, and the bundled ones."""

import pytest

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.model.environment import Needs, misplaced
from weighbridge.model.host import THIS_MACHINE
from weighbridge.model.ladder import Rung, nearest_base
from weighbridge.study.loader import load
from weighbridge.study.source import bundled

from .texts import LINES, changed, loaded

DEFAULTS = ("study: s\nquestion: q\nbaseline: n\nenvironments: {n: {kind: native}}\n"
            "workloads: {w: {kind: sysbench-cpu}}\n")  # fmt: skip


def without_network(text: str) -> str:
    """The study without its workloads that need a network."""
    return "\n".join(line for line in text.splitlines() if "iperf3" not in line and "redis" not in line)


@pytest.mark.parametrize("name", bundled())
def test_the_bundled_studies_load(name: str):
    study = load(name)
    assert study.file.study == name
    assert study.file.question.endswith("?")
    assert study.text == bundled()[name]
    assert study.baseline.name == study.file.baseline
    assert [arm.name for arm in study.arms if arm.aa_of] == (
        [f"{study.baseline.name}-again"] if study.file.aa else []
    )


def test_what_is_not_said_has_a_default():
    study = loaded(DEFAULTS)
    assert (study.file.inside, study.file.equivalence, study.file.seed) == (["server"], 0.03, 1)
    assert study.file.repetitions.blocks == 10
    assert study.file.resources.cpus is study.file.resources.memory is study.file.resources.pin is None
    assert [arm.name for arm in study.arms] == ["n", "n-again"]
    assert study.cells[0].level == ()


def test_quantities_are_in_their_base_units():
    study = loaded(LINES)
    assert study.file.resources.memory == 512 * 2**20
    assert study.file.equivalence == 0.03
    assert next(cell for cell in study.cells if cell.workload == "tcp").options.duration == 1.0


def test_the_aa_arm_is_the_baseline_again():
    study = loaded(LINES)
    again = study.arms[-1]
    assert (again.name, again.aa_of, again.kind) == ("native-again", "native", "native")
    assert again.options == study.baseline.options
    without = loaded(LINES + "aa: false\n")
    assert [arm.name for arm in without.arms] == ["native", "bridge"]


def test_a_sweep_of_a_workload_makes_a_cell_of_every_combination():
    study = loaded(changed("clients: 20", "clients: [10, 50], pipeline: [1, 16], tests: 'set, get'"))
    cells = [cell for cell in study.cells if cell.workload == "redis"]
    assert [(dict(cell.level), cell.options.clients, cell.options.pipeline) for cell in cells] == [
        ({"clients": c, "pipeline": p}, int(c), int(p)) for c in ("10", "50") for p in ("1", "16")
    ]
    assert cells[0].label == "redis (clients=10, pipeline=1)"
    assert len({(cell.workload, cell.level) for cell in study.cells}) == len(study.cells) == 6
    assert all(cell.options.tests == ("set", "get") for cell in cells)


def test_network_none_is_good_enough_without_a_network_workload():
    text = without_network(LINES.replace("network: bridge", "network: none"))
    assert [arm.name for arm in loaded(text).arms] == ["native", "bridge", "native-again"]


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
@pytest.mark.parametrize("begin", ["", "\ufeff", "%YAML 1.2\n---\n"])
def test_any_line_ending_and_a_byte_order_mark(ending: str, begin: str):
    assert loaded(begin + LINES.replace("\n", ending)).file.study == "small"


def test_a_checked_study_cannot_be_changed():
    study = loaded(LINES)
    for part, name in ((study, "text"), (study.file, "seed"), (study.arms[0], "name"), (study.cells[0], "level")):
        with raises_sentence(ValueError):
            setattr(part, name, None)


def test_every_kind_can_be_named_in_a_study():
    needed = {"command": ", run: 'true'", "wrapper": ", preset: unshare"}
    for kind, environment in registry.environments().items():
        if misplaced(environment, THIS_MACHINE):
            continue  # a pod: tests/features/kubernetes/test_study.py
        more = needed.get(kind, "")
        text = changed("bridge: {kind: docker, network: bridge}", f"other: {{kind: {kind}{more}}}")
        options = environment.options(**({"preset": "unshare"} if more else {}))
        if environment.check(options, needs=Needs(network=True)):
            text = without_network(text)
        assert loaded(text)
    for kind in registry.workloads():
        assert loaded(changed("{kind: sysbench-cpu, duration: 1s}", f"{{kind: {kind}{needed.get(kind, '')}}}"))


def test_a_ladder_branches_where_it_says_so():
    ladder = loaded(changed("inside: [server]", "ladder: [native, bridge]")).file.ladder
    assert ladder == (Rung("native", None), Rung("bridge", "native"))
    text = changed("inside: [server]", "ladder:\n  - native\n  - bridge\n  - {other: native}")
    branching = loaded(text.replace("workloads:", "  other: {kind: docker, network: host}\nworkloads:"))
    assert branching.file.ladder == (*ladder, Rung("other", "native"))
    assert nearest_base(ladder, "bridge", {"native"}) == "native"
    assert nearest_base((*ladder, Rung("a", "bridge")), "a", {"native", "a"}) == "native"
    assert nearest_base((Rung("a", "b"), Rung("b", "a")), "a", {"c"}) is None
