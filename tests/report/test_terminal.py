import io
import re

import pytest
from rich.console import Console

from weighbridge.analysis.analyse import analyse
from weighbridge.model.measurement import Outcome
from weighbridge.report.terminal import print_report

from .made_up_runs import LOSS, REQUESTS, TCP, Workload


def shown(store, width=80, *, whole=False, **options) -> str:
    file = io.StringIO()
    print_report(analyse(store), Console(file=file, width=width, highlight=False, **options), whole=whole)
    return file.getvalue().replace("\u00a0", " ")


def test_it_reads_like_the_design(run):
    text = shown(run(costs={"bridge": 1.25, "host": 1.0}), width=200)
    assert "bridge costs " in text and "of tcp throughput against native (10 blocks) - different" in text
    assert "host is equivalent to native within ±3 % in tcp throughput (10 blocks)" in text
    assert "Trusted: the native-against-native control passed; typical noise floor ±" in text
    assert "  native 8 " in text and "Mbit/s, noise floor ±" in text


@pytest.mark.parametrize("width", [40, 80, 160])
def test_no_line_is_wider_than_the_terminal_and_pipes_get_no_colours(run, width):
    lossy = Workload("udp", [(LOSS, 0.05, 2.0)])
    costs = {"bridge": 1.25, "a-name-as-long-as-a-name-is-allowed-to-b": 1.0}
    text = shown(run(costs=costs, workloads=[TCP, lossy]), width=width)
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= width
    assert "different" in text if width >= 80 else True


def test_failures_are_listed_with_their_reason(run):
    failing = {(block, "bridge"): Outcome.DEADLINE for block in range(1, 13)}
    text = shown(run(costs={"bridge": 1.25}, blocks=12, failing=failing), width=200)
    assert "12 of 36 trials failed" in text and "deadline - iperf3: error - unable to connect" in text
    assert "and 2 more" in text


def test_untrusted_is_said_first(run):
    lines = shown(run(costs={"host": 1.0}, aa_factor=1.1)).splitlines()
    told = next(number for number, line in enumerate(lines) if line.startswith("UNTRUSTED"))
    assert told < next(number for number, line in enumerate(lines) if "(10 blocks)" in line)


def test_few_blocks_are_said_once_and_beside_every_verdict(run):
    text = shown(run(costs={"bridge": 1.5}, blocks=6), width=200, whole=True)
    assert text.count("Only 6 blocks: every verdict here is exploratory (10 are needed)") == 1
    assert "(6 blocks) - different (exploratory)" in text and text.count("different (exploratory)") == 3
    assert "exploratory below ten" not in text and "Not precise: " in text
    assert "Only" not in shown(run(costs={"bridge": 1.5}), width=200)


def test_few_blocks_leave_room_for_the_names(run):
    lossy = Workload("udp", [(LOSS, 0.05, 2.0)])
    text = shown(run(costs={"a-bridge": 1.5}, workloads=[TCP, lossy], blocks=1), width=80, whole=True)
    assert text.count("\n environment ") == text.count("\n a-bridge ") == text.count("\n native-again ") == 3
    assert "…" not in text and "too few to say" in text and "±" not in text and "[" not in text


def test_the_baseline_alone(run):
    assert "Only native was measured: there is nothing to compare" in shown(run(costs={}, aa=False))


def test_nothing_to_show(run):
    assert "No trial has finished" in shown(run(costs={"host": 1.0}, blocks=0))


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
    print_report(found, Console(file=file, width=width, highlight=False))
    lines = file.getvalue().splitlines()
    assert "\u00a0" in file.getvalue()
    assert not [line for line in lines if re.search("[0-9]\u00a0 *$|^ *\u00a0", line)]
