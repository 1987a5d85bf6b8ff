import io
import re

import pytest
from rich.console import Console

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.requirement import RequirementError, reports_named
from weighbridge.model.measurement import Outcome
from weighbridge.report.terminal import print_report

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
        assert "differ" in text if width >= 80 else True


def test_the_command_for_all_of_a_report_is_a_line_that_can_be_copied(run):
    file = io.StringIO()
    folder = f"runs/{'a-long-name-' * 9}1"
    print_report(analyse(run(costs={"bridge": 1.25})), Console(file=file, width=80), run=folder)
    assert file.getvalue().splitlines()[-1] == f"weighbridge report {folder} --all"


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


@pytest.mark.parametrize("pattern", ["bridge.tcp.p99 latency", "*.p99 latency", "*.tcp.p99*"])
def test_the_table_that_is_asked_for_alone(run, pattern: str):
    analysis, file = analyse(run(costs={"bridge": 1.25})), io.StringIO()
    tables = reports_named(pattern, analysis)
    assert [report.metric for report in tables] == ["p99 latency"]
    print_report(analysis, Console(file=file, width=80, highlight=False), tables=tables)
    assert file.getvalue().count("typical cost") == 2, "above the matrix, and in the table"
    assert "p99 latency (lower is better" in file.getvalue()


def test_what_is_asked_for_and_is_not_there(run):
    with pytest.raises(RequirementError, match=r"did you mean 'bridge\.tcp\.throughput'"):
        reports_named("bridge.tcp.throughputs", analyse(run(costs={"bridge": 1.25}, blocks=1)))


def test_failures_of_the_same_kind_share_a_line(run):
    failing = {(block, "host"): Outcome.UNPARSEABLE for block in (1, 2)}
    text = shown(run(costs={"host": 1.0}, blocks=6, failing=failing), width=200, whole=False)
    assert "2 of 18 trials failed" in text and "host, tcp: 2 × unparseable" in text
