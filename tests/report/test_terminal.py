import io
import re

import pytest
from rich.console import Console

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.next_step import more_rounds
from weighbridge.analysis.requirement import RequirementError, reports_named
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Outcome
from weighbridge.report.screen import LINES
from weighbridge.report.terminal import print_report
from weighbridge.report.text.answer import answer
from weighbridge.report.text.environments import names_of, use_display_names
from weighbridge.report.text.matrix import MatrixCosts, MatrixRow, large, matrix
from weighbridge.report.text.next_step import rounds_sentence, weigh_again
from weighbridge.report.text.paths import TITLE
from weighbridge.report.text.remarks import remark_text
from weighbridge.report.text.summary import undecided_lines
from weighbridge.report.text.verdicts import open_text
from weighbridge.store.extensions import note_begin
from weighbridge.store.run import RunStore

from .explained_runs import recipe
from .made_up_runs import LOSS, REQUESTS, TCP, Workload


def shown(store, width=80, *, whole=True, **options) -> str:
    file = io.StringIO()
    print_report(analyse(store), Console(file=file, width=width, highlight=False, **options), everything=whole)
    return file.getvalue().replace("\u00a0", " ")


@pytest.mark.parametrize("width", [40, 80, 160])
def test_no_line_is_wider_than_the_terminal_and_pipes_get_no_colours(run, width):
    lossy = Workload("udp", [(LOSS, 0.05, 2.0)])
    costs = {"bridge": 1.25, "a-name-as-long-as-a-name-is-allowed-to-b": 1.0}
    store = run(costs=costs, workloads=[TCP, lossy])
    for whole in (False, True):
        text = shown(store, width=width, whole=whole)
        assert "\x1b" not in text
        assert max(len(line) for line in text.splitlines()) <= width
        assert "significant" in text if width >= 80 else True


def test_the_command_for_all_of_a_report_is_a_line_that_can_be_copied(run):
    file = io.StringIO()
    folder = f"runs/{'a-long-name-' * 9}1"
    print_report(analyse(run(costs={"bridge": 1.25})), Console(file=file, width=80), run=folder)
    assert file.getvalue().splitlines()[-1] == f"weighbridge report {folder} --all"


@pytest.mark.parametrize("name", ["docker-networks", "first-look", "rich", "made up"])
def test_a_run_is_a_screen_with_the_answer_in_twenty_words(run, finished_run, rich_analysis, name: str):
    if name == "made up":
        workloads = [Workload(f"{short}-of-some-length", TCP.metrics) for short in "abcdefghij"]
        costs = {f"environment-{number}": 1.0 + number / 10 for number in range(7)}
        analysis = analyse(run(costs=costs, workloads=workloads, outputs=False))
    else:
        analysis = rich_analysis if name == "rich" else finished_run(name).analysis
    with use_display_names(names_of(analysis)):
        words = answer(analysis)
        first = large(*max(((row, cell) for row in matrix(analysis).rows for cell in row.cells if cell), key=_cost))
    assert len(words.split()) <= 25
    for width in (40, 80):
        file = io.StringIO()
        print_report(analysis, Console(file=file, width=width, highlight=False), pages=["report: runs/a/report.html"])
        lines = file.getvalue().splitlines()
        assert 10 <= len(lines) <= LINES and max(map(len, lines)) <= width
        assert lines[-1] == "report: runs/a/report.html" and "weighbridge report RUN --all" in "\n".join(lines)
        assert words.split()[0] in " ".join(lines[1:3])
        assert first.split()[0] in "".join(lines), "the largest cost is always shown, if only by the answer"


def _cost(cell: tuple[MatrixRow, MatrixCosts]) -> float:
    rows = [row.cost.penalty.estimate for _, row in cell[1].rows if row.cost and row.shown_as == "different"]
    return max(map(abs, rows), default=0.0)


def test_what_more_blocks_would_decide_is_a_command(run):
    undecided = analyse(run(costs={"bridge": 1.25, "host": 1.02}, workloads=[Workload("tcp", [TCP.metrics[0]])]))
    step = more_rounds(undecided)
    assert step is None or step.rounds > 10
    few = analyse(run(costs={"bridge": 1.25}, blocks=7))
    step = more_rounds(few)
    assert step is not None and (step.aim, step.rounds) == ("reliable-verdicts", 10)
    assert "10 rounds" in rounds_sentence(step, few)
    assert weigh_again(step, few) == "Next: measure again with --rounds 10. These rounds give a reliable verdict."
    assert more_rounds(analyse(run(costs={"bridge": 1.25}, blocks=12))) is None
    assert more_rounds(analyse(run(costs={"bridge": 1.25}, aa_factor=1.1, blocks=12))) is None, "not trusted"


def screen(store, width: int = 80, **options) -> str:
    return screen_of(analyse(store), width, **options)


def screen_of(analysis, width: int, **options) -> str:
    file = io.StringIO()
    print_report(analysis, Console(file=file, width=width, highlight=False), run="run", **options)
    return file.getvalue().replace("\u00a0", " ")


def unfinished(store):
    with RunStore(store.directory, writable=True) as writable:
        note_begin(writable)
    return RunStore(store.directory)


def test_the_command_for_more_blocks_asks_where_somebody_may_answer(run):
    few = run(costs={"bridge": 1.25}, blocks=7)
    assert screen(few).count("weighbridge run --out run --rounds 10") == 1
    assert screen(few, yes=True).count("weighbridge run --out run --yes --rounds 10") == 1
    assert "run --out run --allow-concurrent --yes --rounds 10" in screen(few, yes=True, concurrent=True)


@pytest.mark.parametrize("blocks", [3, 7, 12])
def test_an_unfinished_run_has_one_command_that_goes_on_with_it(run, blocks: int):
    """The one for more blocks stood beside "to continue"."""
    store = unfinished(
        run(costs={"bridge": 1.02}, blocks=blocks, workloads=[Workload("w", [(REQUESTS, 1000, 0.05)])])
    )
    assert [line for line in screen(store).splitlines() if "run --out" in line] == [
        "Next, unless it is still running: weighbridge run --out run"
    ]
    assert "run --out" not in screen(store, yes=True, ended=True), "that ends by saying so itself"


def test_why_a_run_stopped_is_on_every_screen(run):
    """It was among "3 more remarks" where lines were short."""
    workloads = [Workload(f"w{number}", [(REQUESTS, 1000, 0.05)]) for number in range(8)]
    costs = {f"environment-{number}": 1.0 + number / 10 for number in range(6)}
    analysis = analyse(unfinished(run(costs=costs, workloads=workloads, blocks=12, outputs=False)))
    for width in (40, 80):
        text = screen_of(analysis, width)
        assert " ".join(text.split()).count("not finished: in round 12") == 1
        assert len(text.splitlines()) <= LINES


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("metrics", [1, 3, 12])
def test_a_screen_with_causes_says_what_its_brackets_are(run, width: int, metrics: int):
    """The causes of two costs pushed the table and the line below it off the screen."""
    workloads = [Workload(f"w{number}", [(REQUESTS, 1000, 0.02)]) for number in range(metrics)]
    text = screen(run(**recipe(workloads=workloads, outputs=False)), width)
    assert "Causes of the cost" in text
    assert text.count("Cost against native, 95% interval in brackets") == 1
    assert len(text.splitlines()) <= LINES


@pytest.mark.parametrize("width", [40, 80])
def test_a_screen_of_a_disturbed_run_never_loses_its_control(run, width: int):
    """What others took and what helps against it took the room of both lines."""
    others = Flag(FlagCode.OTHER_WORK, "host a", {"cpus": 1.8})
    names = ("native", "native-again", "bridge")
    store = run(
        costs={"bridge": 1.25}, blocks=8, workloads=[Workload(name, [(REQUESTS, 1000, 0.1)]) for name in "abcdef"],
        flags={(block, name): (others,) for block in range(1, 9) for name in names},
    )  # fmt: skip
    text = " ".join(screen(store, width).split())
    assert "Control passed: two native copies differ by at most" in text and "(only 8 rounds)" in text
    assert "Disturbed: other programs used 1.8 CPUs of host a in 96 of 96 native trials" in text
    assert "Every verdict is exploratory: 8 rounds. You need 10 for a reliable verdict." in text
    assert len(screen(store, width).splitlines()) <= LINES


def test_a_cost_within_the_margin_is_shown_with_its_interval(run):
    assert re.search(r"within ±3% *\n.*cost -?\d\.\d% \[-\d\.\d, \d\.\d\]", screen(run(costs={"host": 1.0})))


def test_texts_cannot_steer_the_terminal(run):
    store = run(
        costs={"host": 1.0}, blocks=1, question="[bold]is\x1b[2J it?[/nope]", message="\x1b]0;owned\x07",
        failing={(1, "host"): Outcome.UNPARSEABLE},
    )  # fmt: skip
    text = shown(store)
    assert "\x1b" not in text and "\x07" not in text and "[bold]is" in text


@pytest.mark.parametrize("width", range(60, 100))
def test_no_line_ends_inside_a_number(run, width: int):
    file = io.StringIO()
    second = Workload("tcp", [*TCP.metrics, (REQUESTS, 25_000.0, 0.1)])
    found = analyse(run(costs={"bridge": 1.25, "a-name-of-some-length": 1.1}, workloads=[second], blocks=2))
    print_report(found, Console(file=file, width=width, highlight=False), everything=True)
    lines = file.getvalue().splitlines()
    assert "\u00a0" in file.getvalue()
    assert not [line for line in lines if re.search("[0-9]\u00a0 *$|^ *\u00a0", line)]


@pytest.mark.parametrize("width", range(60, 122, 6))
@pytest.mark.parametrize("environments", [6, 7])
def test_no_line_ends_before_the_unit_of_a_margin(run, width: int, environments: int):
    names = ("docker-host", "netns", "docker-bridge", "published-port", "docker-macvlan", "gvisor", "podman-rootless")
    costs = {name: 1.0 if number % 2 else 1.02 for number, name in enumerate(names[:environments])}
    level = (("connections", "1000"),)
    both = [Workload("tcp", [(REQUESTS, 1000, 0.004)]), Workload("web-requests", [(REQUESTS, 5e4, 0.03)], level)]
    file = io.StringIO()
    print_report(analyse(run(costs=costs, workloads=both)), Console(file=file, width=width, highlight=False))
    assert "within ±3%" in file.getvalue()
    assert not [line for line in file.getvalue().splitlines() if re.search("±[0-9.]+( {2,}| *$)", line)]


@pytest.mark.parametrize("pattern", ["bridge.tcp.p99 latency", "*.p99 latency", "*.tcp.p99*"])
def test_the_table_that_is_asked_for_alone(run, pattern: str):
    analysis, file = analyse(run(costs={"bridge": 1.25})), io.StringIO()
    tables = reports_named(pattern, analysis)
    assert [report.metric for report in tables] == ["p99 latency"]
    print_report(analysis, Console(file=file, width=80, highlight=False), tables=tables)
    assert file.getvalue().count("typical cost") == 1, "in the table"
    assert "p99 latency (lower is better" in file.getvalue()


def test_what_is_asked_for_and_is_not_there(run):
    with pytest.raises(RequirementError, match=r"Did you mean 'bridge\.tcp\.throughput'"):
        reports_named("bridge.tcp.throughputs", analyse(run(costs={"bridge": 1.25}, blocks=1)))


def test_failures_of_the_same_kind_share_a_line(run):
    failing = {(block, "host"): Outcome.UNPARSEABLE for block in (1, 2)}
    text = shown(run(costs={"host": 1.0}, blocks=6, failing=failing), width=200, whole=False)
    assert "2 of 18 trials failed" in text and "2 trials in host (tcp) had unreadable output" in text


def test_beside_what_is_undecided_stands_what_would_have_shown_and_what_would_settle_it(run):
    """With --all; the screen has the median and the largest cost that the run could miss, and how long for all."""
    noisy = [Workload("tcp", [(REQUESTS, 1000, 0.1)]), Workload("udp", [(REQUESTS, 1000, 0.001)])]
    store = run(costs={"host": 1.02, "bridge": 1.0}, workloads=noisy, blocks=12)
    text = " ".join(shown(store, whole=True).split())
    rows = [(report, row) for report in analyse(store).headlines for row in report.comparisons if not row.aa]
    undecided = [(report, row) for report, row in rows if row.verdict == "inconclusive"]
    assert len(undecided) == 2
    for report, row in undecided:
        assert (sentence := open_text(report, row).replace("\u00a0", " "))
        assert text.count(f"{row.environment}, {report.label.upper()} requests/s: {sentence}") == 1
        assert f"about {row.visible.blocks} rounds" in sentence
    screen = " ".join(shown(store).split()).replace("\u00a0", " ")
    most = max(undecided, key=lambda each: each[1].visible.cost)[1].visible
    assert f"about {most.blocks} rounds" in screen and f"{most.cost:.0f}%" in screen


def test_what_differs_beside_the_isolation_is_not_under_the_head_of_the_paths(finished_run):
    """Confounders had followed the table of a path's figures, as if they were of it."""
    text = shown(finished_run("docker-networks").store, width=200)
    confounders = [remark_text(each) for each in finished_run("docker-networks").analysis.confounders]
    places = [text.index(each.replace("\u00a0", " ")[:100]) for each in confounders]
    assert places and max(places) < text.index(TITLE)


def test_a_workload_with_many_levels_has_one_line_of_what_is_undecided(run):
    levels = [Workload("web", [(REQUESTS, 1000, 0.05)], (("connections", str(n)),)) for n in range(1, 6)]
    analysis = analyse(run(costs={"bridge": 1.0}, workloads=levels, blocks=12))
    (line,) = undecided_lines(analysis)
    rows = [row for report in analysis.headlines for row in report.comparisons if not row.aa]
    (worst,) = [each for each in rows if each.visible.cost == max(row.visible.cost for row in rows)]
    assert f"{worst.visible.cost:.1f}%" in line or f"{worst.visible.cost:.0f}%" in line
    assert "at 5 of 5 levels" in line
