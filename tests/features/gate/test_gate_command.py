"""`weighbridge gate`: its exit codes, what it writes, what it refuses, and how it goes on with a run."""

import contextlib
import io
import json
import lzma
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from cli.command_line import one_sentence
from report.made_up_runs import LOSS, THROUGHPUT, Recipe, Workload, make_run
from sentences import assert_sentence
from weighbridge.errors import EnvironmentLost, Interrupted, SecretError, TrialsFailed, Unavailable
from weighbridge.features.gate import gate_command
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome
from weighbridge.report.screen import LINES
from weighbridge.store.run import DATABASE, RunStore

TCP = [Workload("tcp", [(THROUGHPUT, 8.66e9, 0.01)])]
KEPT, OVER, UNSURE = (f"bridge.tcp.throughput<={most}%" for most in (35, 5, 20))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A bridge that costs about a fifth of the throughput."""
    make_run(tmp_path / "run", Recipe(costs={"bridge": 1.25, "host": 1.0}, workloads=TCP, blocks=10)).close()
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("budgets", "code", "answer"),
    [([KEPT], 0, "passed"), ([OVER], 11, "failed"), ([UNSURE], 12, "undecided"), ([UNSURE, OVER], 11, "failed")],
)
def test_each_answer_has_an_exit_code(weighbridge, run, budgets, code, answer):
    said = weighbridge("gate", run, *(word for each in budgets for word in ("--budget", each)))
    assert said.code == code and len([line for line in said.out.splitlines() if ": bridge.tcp" in line]) == len(
        budgets
    )
    assert f"Gate {answer}: " in (said.err if code else said.out)
    assert not (run / "report.html").exists(), "a gate only reads"
    said = weighbridge("gate", run, "--json", *(word for each in budgets for word in ("--budget", each)))
    document = json.loads(said.out)
    assert said.code == code and document["answer"] == answer
    steps = [(step["code"], step["command"][-2:], step["seconds"]) for step in document["next_steps"]]
    assert steps == [("undecided", ["--extend", "10min"], 600)] * (answer == "undecided")


def test_undecided_as_all_trials_failed_is_an_error_of_its_own(weighbridge, tmp_path):
    """A job may be allowed to end with 12: a program that crashes in every trial passed."""

    arms = ("native", "native-again", "host", "bridge")
    lost = {(block, arm): Outcome.PROGRAM_FAILED for block in range(1, 11) for arm in arms}
    make_run(tmp_path / "run", Recipe(costs={"bridge": 1.25}, workloads=TCP, failing=lost)).close()
    said = weighbridge("gate", tmp_path / "run", "--budget", "*<=35%")
    assert said.code == 9
    assert_sentence(said.err)
    half = {place: outcome for place, outcome in lost.items() if place[1] == "bridge"}
    make_run(tmp_path / "half", Recipe(costs={"bridge": 1.25}, workloads=TCP, failing=half)).close()
    assert weighbridge("gate", tmp_path / "half", "--budget", KEPT).code == 9
    assert weighbridge("report", tmp_path / "half", "--fail-if", "bridge.tcp.throughput > 35%").code == 9


def test_a_terminal_has_a_screen_of_findings_the_gravest_first(weighbridge, tmp_path, monkeypatch):
    workloads = [Workload(f"tcp{number}", [(THROUGHPUT, 8.66e9, 0.01)]) for number in range(40)]
    make_run(tmp_path / "run", Recipe(costs={"bridge": 1.25}, workloads=workloads, blocks=10)).close()
    screen = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr(gate_command, "out", lambda: screen)
    budgets = ["*.*.throughput<=35%", "bridge.tcp39.throughput<=5%"]
    said = weighbridge("gate", tmp_path / "run", *(word for each in budgets for word in ("--budget", each)))
    lines = screen.file.getvalue().splitlines()
    assert said.code == 11 and len(lines) <= LINES
    assert lines[0].startswith("failed: bridge.tcp39.throughput")
    shown = sum(line.startswith(("failed: ", "passed: ")) for line in lines)
    assert lines[-1].startswith(f"{len(workloads) + 1 - shown} more findings: ")


def test_an_untrusted_session(weighbridge, tmp_path):
    make_run(tmp_path / "run", Recipe(costs={"bridge": 1.25}, aa_factor=1.5)).close()
    said = weighbridge("gate", tmp_path / "run", "--budget", KEPT)
    assert said.code == 10 and "The control failed" in said.err


def test_against_an_earlier_run(weighbridge, run, tmp_path):
    make_run(tmp_path / "old", Recipe(costs={"bridge": 1.0, "host": 1.0}, workloads=TCP, seed=9)).close()
    with RunStore(tmp_path / "old", writable=True) as store:
        store.set_info("run_id", "202301010000")
    said = weighbridge("gate", run, "--against", tmp_path / "old", "--margin", "3%", "--json")
    outcomes = {each["environment"]: each["outcome"] for each in json.loads(said.out)["findings"]}
    assert (said.code, outcomes) == (11, {"bridge": "failed", "host": "passed"})
    said = weighbridge("gate", run, "--against", tmp_path / "old", "--margin", "60%", "--json")
    assert (said.code, json.loads(said.out)["against"]) == (0, "202301010000")
    assert {each["about"] for each in json.loads(said.out)["findings"]} == {"change"}
    one_sentence(weighbridge("gate", run, "--against", run, "--margin", "3%"), 2)


def test_runs_of_other_questions_end_as_in_compare(weighbridge, run, tmp_path):
    for name, recipe in {
        "elsewhere": Recipe(costs={"other": 1.0}, workloads=TCP),
        "losses": Recipe(costs={"bridge": 1.0}, workloads=[Workload("tcp", [(LOSS, 4.0, 0.02)])]),
    }.items():
        make_run(tmp_path / name, recipe).close()
        with RunStore(tmp_path / name, writable=True) as store:
            store.set_info("run_id", f"{len(name):012x}")
    told = weighbridge("compare", run, tmp_path / "elsewhere")
    one_sentence(told, 6)
    asked = ("--margin", "3%", "--against")
    one_sentence(weighbridge("gate", run, *asked, tmp_path / "elsewhere"), 6)
    one_sentence(weighbridge("gate", run, *asked, tmp_path / "losses"), 6)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 2),
        (["--budget", "nonsense"], 2),
        (["--budget", "*.troughput<=5%"], 2),
        (["--budget", "bridge.tcp.throughput<=5ms"], 2),
        (["--margin", "3%"], 2),
        (["--against", "nowhere"], 2),
        (["--against", "nowhere", "--margin", "3%"], 6),
        (["--against", "nowhere", "--margin", "3"], 2),
        (["--budget", KEPT, "--extend", "10"], 2),
        (["--budget", KEPT, "--extend", "10 parsecs"], 2),
        (["--budget", KEPT, "--json", "--annotations", "gitlab"], 2),
        (["--budget", KEPT, "--junit", "nowhere/gate.xml"], 1),
        (["--budget", KEPT, "--bmf", "."], 1),
        (["--budget", KEPT, "--bmf", "x", "--junit", "./x"], 2),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(weighbridge, run, words, code):
    one_sentence(weighbridge("gate", run, *words), code)


def test_what_is_no_run(weighbridge, run, tmp_path):
    one_sentence(weighbridge("gate", tmp_path / "nowhere", "--budget", KEPT), 6)
    one_sentence(weighbridge("gate", tmp_path, "--budget", KEPT), 6)
    (run / "run.sqlite").write_bytes(b"SQLite format 3\0" + bytes(200))
    assert weighbridge("gate", run, "--budget", KEPT).code == 6


def test_every_output(weighbridge, run, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("# Before\n\n")
    files = ("--junit", tmp_path / "g.xml", "--markdown", summary, "--bmf", tmp_path / "g.json")
    said = weighbridge("gate", run, "--budget", OVER, *files, "--annotations", "github")
    assert said.code == 11 and [line for line in said.out.splitlines() if line.startswith("::error ")]
    assert ET.parse(tmp_path / "g.xml").getroot().get("failures") == "1"
    assert summary.read_text().startswith("# Before\n\n## Weighbridge: ")
    assert "throughput cost (%)" in json.loads((tmp_path / "g.json").read_text())["bridge.tcp"]
    said = weighbridge("gate", run, "--budget", OVER, "--annotations", "gitlab")
    assert said.code == 11 and json.loads(said.out)[0]["severity"] == "major"


def test_gitlab_is_given_a_path_of_the_project(weighbridge, run, monkeypatch, tmp_path):
    """As it wants it: no absolute one, no `./`, no `..`, wherever the run is and however it was named."""

    def path(named) -> str:
        said = weighbridge("gate", named, "--budget", OVER, "--annotations", "gitlab")
        return json.loads(said.out)[0]["location"]["path"]

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI_PROJECT_DIR", raising=False)
    assert path(run) == path("run") == path("./run") == "run"
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path.parent))
    assert path("run") == f"{tmp_path.name}/run"
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path / "elsewhere"))
    assert path(run) == "run"


def test_a_file_that_cannot_be_written_takes_nothing_else_away(weighbridge, run, tmp_path, monkeypatch):
    written = Path.open

    def full(self, mode="r", *rest, **more):
        if self.name == "g.xml":
            raise OSError(28, "No space left on device", str(self))
        return written(self, mode, *rest, **more)

    monkeypatch.setattr(Path, "open", full)
    files = ("--junit", tmp_path / "g.xml", "--bmf", tmp_path / "g.json")
    for budget, code in ((KEPT, 1), (OVER, 11)):
        said = weighbridge("gate", run, "--budget", budget, *files)
        assert said.code == code
        assert_sentence(said.err)
        assert json.loads((tmp_path / "g.json").read_text())


class Continued:
    """Stands for `run_study`: blocks are made up, with the costs that a test says."""

    def __init__(self, factor: float, ended: Exception | None = None) -> None:
        self.factor, self.ended, self.asked = factor, ended, []

    def __call__(self, study, directory, progress, after, blocks=None, extender=None):
        with RunStore(directory, writable=True) as store:
            while (until := extender.total_blocks(store)) is not None:
                further_blocks(store, until, self.factor)
                self.asked.append(until)
                if self.ended is not None:
                    raise self.ended


def further_blocks(store: RunStore, until: int, factor: float) -> None:
    """Blocks of the environments that the last look has open, and of the baseline."""
    import random

    from report.made_up_runs import _record

    chance = random.Random(until)
    recipe = Recipe(costs={"bridge": factor, "host": 1.0}, workloads=TCP)
    done = max(trial.block for trial in store.trials())
    arms = ["native", "native-again", *(arm.environment for arm in store.gate_looks()[-1].open)]
    clock = max(trial.started_at for trial in store.trials())
    for block in range(done + 1, until + 1):
        for name in arms:
            clock += 2
            store.save(_record(recipe, TCP[0], block, name, clock=clock, shared=0.0, chance=chance))


@pytest.fixture
def continued(monkeypatch):
    def use(factor, ended=None):
        stand_in = Continued(factor, ended)
        monkeypatch.setattr("weighbridge.runner.run.run_study", stand_in)
        monkeypatch.setattr("weighbridge.cli.approval.confirm_continued", lambda directory, yes: False)
        monkeypatch.setattr("weighbridge.runner.run.study_of", study_like)
        return stand_in

    return use


def study_like(store):
    from types import SimpleNamespace

    from weighbridge.model.study import Repetitions

    return SimpleNamespace(file=SimpleNamespace(repetitions=Repetitions(blocks=10)))


def test_an_undecided_run_goes_on_until_it_is_decided(weighbridge, run, continued):
    stand_in = continued(1.12)
    said = weighbridge("gate", run, "--budget", UNSURE, "--budget", "host.tcp.throughput<=20%", "--extend", "10min")
    assert said.code == 0, said
    assert "running more rounds" in said.err and "looks." in said.out
    with RunStore(run) as store:
        looks = store.gate_looks()
        assert [look.until for look in looks] == [*stand_in.asked, None]
        assert looks[0].open == (ArmId(CellId("tcp", Level()), "bridge"),) and looks[-1].open == ()
        assert sum(look.share for look in looks) <= 0.8 + 1e-9
        assert {trial.environment for trial in store.trials() if trial.block > 10} == {
            "native", "native-again", "bridge",
        }  # fmt: skip
    assert weighbridge("gate", run, "--budget", UNSURE).code == 0, "it says the same without more blocks"


def test_a_decided_run_does_not_go_on(weighbridge, run, continued):
    stand_in = continued(1.12)
    for budget, code in ((KEPT, 0), (OVER, 11)):
        assert weighbridge("gate", run, "--budget", budget, "--extend", "10min").code == code
    assert stand_in.asked == []
    with RunStore(run) as store:
        assert [each.until for each in store.gate_looks()] == [None], "both asked at one look"


def test_time_for_no_block(weighbridge, run, continued):
    stand_in = continued(1.12)
    said = weighbridge("gate", run, "--budget", UNSURE, "--extend", "1s")
    assert said.code == 12 and stand_in.asked == []
    assert_sentence(said.err)
    assert "undecided: bridge.tcp.throughput: " in said.out and "inside the interval" not in said.out


def test_a_missing_value_is_told_before_the_verdict(weighbridge, run, continued, monkeypatch):
    def refuse(directory, yes):
        raise SecretError("A has no value")

    stand_in = continued(1.25)
    monkeypatch.setattr("weighbridge.cli.approval.confirm_continued", refuse)
    said = weighbridge("gate", run, "--budget", UNSURE, "--extend", "1h", "--yes")
    assert (said.code, said.out, said.err) == (SecretError.exit_code, "", "weighbridge: A has no value\n")
    assert stand_in.asked == []


def test_what_ends_it_too_soon_is_told_after_all_that_is_known(weighbridge, run, continued, tmp_path):
    continued(1.25, EnvironmentLost("bridge was lost"))
    said = weighbridge("gate", run, "--budget", UNSURE, "--extend", "10min", "--junit", tmp_path / "g.xml")
    assert said.code == 8 and "bridge was lost" in said.err and "to continue: weighbridge gate" in said.err
    assert ET.parse(tmp_path / "g.xml").getroot().get("errors") == "1"
    with RunStore(run) as store:
        assert max(trial.block for trial in store.trials()) > 10, "what was measured is kept"


def test_a_workload_that_failed_elsewhere_is_the_gate_s_to_judge(weighbridge, run, continued):
    continued(1.12, TrialsFailed("cpu failed three times"))
    said = weighbridge("gate", run, "--budget", UNSURE, "--extend", "10min")
    assert said.code in (0, 12) and "cpu failed" not in said.err
    with RunStore(run) as store:
        assert store.gate_looks()[-1].until is None, "what there is was looked at"


def grow(run: Path, until: int, factor: float = 1.25) -> None:
    """What `run --out RUN --blocks N` leaves."""
    from weighbridge.store.extensions import extend

    with RunStore(run, writable=True) as store:
        extend(store, study_like(store).file.repetitions, until)
        blocks_of_all(store, until, factor)


def blocks_of_all(store: RunStore, until: int, factor: float) -> None:
    """Whole blocks, of every environment."""
    import random

    from report.made_up_runs import _record

    recipe, chance = Recipe(costs={"bridge": factor, "host": 1.0}, workloads=TCP), random.Random(until)
    done, clock = (
        max(each(trial) for trial in store.trials()) for each in (lambda t: t.block, lambda t: t.started_at)
    )
    for block in range(done + 1, until + 1):
        for name in ("native", "native-again", "host", "bridge"):
            clock += 2
            store.save(_record(recipe, TCP[0], block, name, clock=clock, shared=0.0, chance=chance))


def spent(run: Path) -> float:
    with RunStore(run) as store:
        return sum(look.share for look in store.gate_looks())


def test_gates_of_a_run_that_grows_never_spend_more_than_the_error(weighbridge, run):
    shares = []
    for until in (0, 12, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30):
        if until > 12 or (until == 12 and len(shares) == 1):
            grow(run, until)
        said = weighbridge("gate", run, "--budget", UNSURE, "--json")
        document = json.loads(said.out)
        shares.append(document["share"])
        earlier = [each["share"] for each in document["earlier_looks"]]
        assert document["looks"] == len(earlier) + 1 and sum(earlier) + document["share"] <= 1
        assert said.code == 12
    assert shares[1] == shares[2], "the run had not grown"
    assert spent(run) <= 1
    assert shares[-1] == 0 and {each["reason"] for each in document["findings"]} == {"spent"}


def test_an_extension_that_is_killed_again_and_again_never_spends_more(weighbridge, run, continued, monkeypatch):
    """Killed (no look is taken at the end) a block or two after each look, and called again."""

    class Killed(BaseException):
        pass

    continued(1.25)

    def killed(study, directory, progress, after, blocks=None, extender=None):
        with RunStore(directory, writable=True) as store:
            until = extender.total_blocks(store)
            if until is not None:
                further_blocks(store, min(until, max(trial.block for trial in store.trials()) + 2), 1.25)
        raise Killed

    monkeypatch.setattr("weighbridge.runner.run.run_study", killed)
    taken = 0
    for _ in range(12):
        with contextlib.suppress(Killed):
            weighbridge("gate", run, "--budget", UNSURE, "--extend", "10min")
        with RunStore(run) as store:
            assert len(store.gate_looks()) >= taken
            taken = len(store.gate_looks())
        assert spent(run) <= 1
    assert taken > 5


def test_no_more_blocks_are_run_beside_another_run(weighbridge, run, continued, monkeypatch):
    stand_in = continued(1.12)
    monkeypatch.delenv("WEIGHBRIDGE_ALLOW_CONCURRENT")
    monkeypatch.setattr("weighbridge.runner.living.others", lambda own="": {"ba9876543210": "/runs/other"})
    said = weighbridge("gate", run, "--budget", UNSURE, "--extend", "10min")
    assert stand_in.asked == [] and "run ba9876543210 in /runs/other has been measuring on this machine" in said.err
    assert said.code == Unavailable.exit_code
    assert weighbridge("gate", run, "--budget", UNSURE, "--extend", "10min", "--beside-others").code == 0
    assert stand_in.asked


def test_an_unfinished_run_that_is_extended_keeps_its_first_look(weighbridge, run, continued, monkeypatch):
    """At 10 blocks of 14: the look decides nothing, and the run first comes to its 14."""
    stand_in = continued(1.25)

    def unfinished(study, directory, progress, after, blocks=None, extender=None):
        with RunStore(directory, writable=True) as store:
            blocks_of_all(store, 14, 1.25)
        stand_in(study, directory, progress, after, blocks, extender)

    monkeypatch.setattr("weighbridge.runner.run.run_study", unfinished)
    weighbridge("gate", run, "--budget", UNSURE, "--extend", "10min")
    with RunStore(run) as store:
        looks = store.gate_looks()
    assert [each.blocks for each in looks[:2]] == [10, 14]
    assert (looks[0].open, looks[0].until) == ((), 14), "everything took part in those between"
    assert 0 < sum(each.share for each in looks) <= 1


def test_a_half_block_that_an_interruption_left_is_a_look_of_its_own(weighbridge, run, continued, monkeypatch):
    """It is finished first, at the same number of blocks: the gate then goes on with what is left of the error."""
    stand_in = continued(1.25)

    def half(study, directory, progress, after, blocks=None, extender=None):
        with RunStore(directory, writable=True) as store:
            until = extender.total_blocks(store)
            further_blocks(store, until - 1, 1.25)
            last_block(store, until, ("native",))
        raise Interrupted(2)

    def rest(study, directory, progress, after, blocks=None, extender=None):
        with RunStore(directory, writable=True) as store:
            last_block(store, max(trial.block for trial in store.trials()), ("native-again", "bridge"))
        stand_in(study, directory, progress, after, blocks, extender)

    monkeypatch.setattr("weighbridge.runner.run.run_study", half)
    weighbridge("gate", run, "--budget", UNSURE, "--extend", "10min")
    monkeypatch.setattr("weighbridge.runner.run.run_study", rest)
    said = weighbridge("gate", run, "--budget", UNSURE, "--extend", "10min", "--json")
    assert stand_in.asked and "spent" not in {each["reason"] for each in json.loads(said.out)["findings"]}
    with RunStore(run) as store:
        assert all(each.share > 0 for each in store.gate_looks())
    assert spent(run) <= 1


def last_block(store: RunStore, block: int, arms: tuple[str, ...]) -> None:
    """Trials of one block."""
    import random

    from report.made_up_runs import _record

    recipe = Recipe(costs={"bridge": 1.25, "host": 1.0}, workloads=TCP)
    clock = max(trial.started_at for trial in store.trials())
    for name in arms:
        clock += 2
        store.save(_record(recipe, TCP[0], block, name, clock=clock, shared=0.0, chance=random.Random(name)))


def test_an_interruption_leaves_enough_to_go_on(weighbridge, run, continued):
    continued(1.25, EnvironmentLost("bridge was lost"))
    weighbridge("gate", run, "--budget", UNSURE, "--extend", "10min")
    assert spent(run) < 0.6


def test_a_run_that_is_read_only_is_judged_with_a_note(weighbridge, run, monkeypatch):
    monkeypatch.setattr("weighbridge.features.gate.gate_command.os.access", lambda path, mode: mode != os.W_OK)
    said = weighbridge("gate", run, "--budget", KEPT)
    assert said.code == 0
    assert_sentence(said.err)
    with RunStore(run) as store:
        assert store.gate_looks() == ()


def test_a_kept_file_is_judged_with_a_note(weighbridge, run, tmp_path):
    kept = tmp_path / "kept.sqlite.xz"
    kept.write_bytes(lzma.compress((run / DATABASE).read_bytes()))
    said = weighbridge("gate", kept, "--budget", KEPT)
    assert said.code == 0
    assert_sentence(said.err)


def test_a_run_that_is_being_written_is_not_judged(weighbridge, run):
    with RunStore(run, writable=True):
        one_sentence(weighbridge("gate", run, "--budget", KEPT), 6)


def test_a_run_is_opened_to_write_only_for_a_new_look(weighbridge, run, monkeypatch):
    opened: list[bool] = []
    init = RunStore.__init__

    def note(store: RunStore, directory: Path, *, writable: bool = False) -> None:
        opened.append(writable)
        init(store, directory, writable=writable)

    monkeypatch.setattr(RunStore, "__init__", note)
    codes = [weighbridge("gate", run, "--budget", budget).code for budget in (KEPT, OVER)]
    assert codes == [0, 11] and opened == [False, True, False]


def test_a_look_that_is_kept_is_shown_while_a_run_goes_on(weighbridge, run):
    assert weighbridge("gate", run, "--budget", KEPT).code == 0
    with RunStore(run, writable=True):
        assert weighbridge("gate", run, "--budget", KEPT).code == 0


def test_budgets_are_read_from_a_file_too(weighbridge, run, tmp_path):
    file = tmp_path / "budgets.txt"
    file.write_text(f"# the network\n\n  {KEPT}  # as measured in May\n*.nothing#here<=5% # 2\n")
    said = weighbridge("gate", run, "--budget-file", file)
    assert said.code == 2 and "nothing#here" in said.err
    file.write_text(f"# the network\n\n  {KEPT}  # as measured in May\n")
    assert weighbridge("gate", run, "--budget-file", file).code == 0
    said = weighbridge("gate", run, "--budget-file", file, "--budget", OVER, "--json")
    assert said.code == 11 and [each["outcome"] for each in json.loads(said.out)["findings"]] == ["failed", "passed"]


TOO_LONG = f"{KEPT}\n{'#' * 2**20}\n{OVER}\n"


@pytest.mark.parametrize(
    "text", [None, "", "# nothing\n", f"{KEPT}\n\nbridge is fast\n", "\0", pytest.param(TOO_LONG, id="too-long")]
)
def test_a_file_without_budgets_is_one_sentence(weighbridge, run, tmp_path, text):
    if text is not None:
        (tmp_path / "budgets.txt").write_text(text)
    one_sentence(weighbridge("gate", run, "--budget-file", tmp_path / "budgets.txt"), 2)
