"""sysbench fileio: options that fit together, its files, what each mode tells, reports that contradict themselves."""

from pathlib import PurePosixPath
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.model.measurement import Unparseable
from weighbridge.model.workload import Endpoint
from weighbridge.workloads.sysbench_fileio import PLUGIN, SysbenchFileioOptions

from .captured import AT, GOOD, SMALL_FILES, data, parse, result

KIND = "sysbench-fileio"
MODES = ("rndrw", "rndrd", "rndwr", "seqrd", "seqwr", "seqrewr")


def _options(**given: Any) -> SysbenchFileioOptions:
    return SysbenchFileioOptions.model_validate(given)


def _argv(**given: Any) -> tuple[str, ...]:
    return PLUGIN.command("solo", _options(**given), AT).argv


def _names(**given: Any) -> list[str]:
    return [metric.name for metric in PLUGIN.metrics(_options(**given))]


def test_the_files_are_made_once_for_all_levels_of_one_mode():
    made = PLUGIN.prepare(_options(), AT)
    assert made.argv == (
        "sh", "-c", 'mkdir -p "$1" && cd "$1" && shift && exec "$@"', "prepare",
        "/srv/sysbench-fileio/rndrw-128x16777216",
        "sysbench", "fileio", "--file-num=128", "--file-total-size=2147483648", "prepare",
    )  # fmt: skip
    for same in ({"fsync": "all"}, {"block_size": "4KiB"}, {"threads": 4}, {"io_mode": "mmap"}, {"duration": "1s"}):
        assert PLUGIN.prepare(_options(**same), AT).argv == made.argv
    others = ({}, {"files": 64}, {"file_size": "1GiB"}, {"files": 64, "file_size": "1GiB"})
    given = [{"mode": mode, **other} for mode in MODES if mode != "seqwr" for other in others]
    assert len({PLUGIN.prepare(_options(**each), AT).argv[4] for each in given}) == len(given)


def test_each_of_several_sites_has_files_of_its_own():
    there = Endpoint("127.0.0.1", "127.0.0.1", 1, data="/srv/site-2")
    folder = "/srv/site-2/sysbench-fileio/rndrw-128x16777216"
    assert PLUGIN.prepare(_options(), there).argv[4] == folder
    assert PLUGIN.command("solo", _options(), there).argv[1] == f"--chdir={folder}"


@pytest.mark.parametrize("cold", [True, False])
def test_a_creation_begins_in_an_empty_folder(cold: bool):
    options = _options(mode="seqwr", cold=cold)
    assert PLUGIN.prepare(options, AT) is None
    *shell, folder = PLUGIN.restore(options, AT).argv
    assert shell == ["sh", "-c", 'rm -rf "$1" && mkdir -p "$1"', "restore"]
    assert PurePosixPath(folder).is_relative_to("/srv/sysbench-fileio/")
    assert f"--chdir={folder}" in PLUGIN.command("solo", options, AT).argv


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "seqwr"])
def test_what_was_written_before_is_not_written_in_the_measured_time(mode: str):
    """Emptying the caches writes it too."""
    warm = PLUGIN.restore(_options(mode=mode, cold=False), AT).argv
    assert warm == ("sync", "--file-system", PLUGIN.prepare(_options(mode=mode), AT).argv[4])
    assert PLUGIN.restore(_options(mode=mode), AT) is None
    assert PLUGIN.cold(_options(mode=mode))
    assert not PLUGIN.cold(_options(mode=mode, cold=False))


def test_its_files_are_its_room_and_its_time():
    small, large = _options(file_size="1GiB"), _options(file_size="64GiB")
    assert (PLUGIN.room(small), PLUGIN.room(large)) == (2**30, 2**36)
    assert PLUGIN.needs_data(small)
    for command in (PLUGIN.prepare, PLUGIN.restore, lambda options, at: PLUGIN.command("solo", options, at)):
        one, other = (
            command(options.model_copy(update={"cold": False}), AT).deadline_s for options in (small, large)
        )
        assert other - one == pytest.approx((2**36 - 2**30) / 4e6), "as long as a slow disk writes"


LATENCY = ["latency_mean", "latency_p95", "latency_p99"]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ["reads", "writes", "fsyncs", "read_throughput", "write_throughput", *LATENCY]),
        ({"fsync": "all"}, ["reads", "writes", "fsyncs", "read_throughput", "write_throughput", *LATENCY]),
        ({"mode": "rndrd"}, ["reads", "read_throughput", *LATENCY]),
        ({"mode": "seqrd", "io_mode": "async"}, ["reads", "read_throughput"]),
        ({"mode": "rndwr"}, ["writes", "fsyncs", "write_throughput", *LATENCY]),
        ({"mode": "seqwr", "fsync": "end"}, ["writes", "write_throughput", *LATENCY]),
        ({"mode": "seqrewr", "fsync": "never"}, ["writes", "write_throughput", *LATENCY]),
    ],
)
def test_only_what_a_mode_does_is_measured(given: dict[str, Any], names: list[str]):
    assert _names(**given) == names


@pytest.mark.parametrize(
    ("given", "durability"),
    [
        ({"mode": "rndrd"}, None),
        ({"mode": "seqrd", "extra_flags": "direct"}, None),
        ({}, "asynchronous"),
        ({"fsync": "never"}, "asynchronous"),
        ({"fsync": "end"}, "asynchronous"),
        ({"fsync": "all"}, "synchronous"),
        ({"fsync": "all", "threads": 8}, "synchronous"),
        ({"fsync": "all", "io_mode": "mmap"}, "synchronous"),
        ({"fsync": "all", "io_mode": "async"}, "asynchronous"),
        ({"fsync": 1}, "synchronous"),
        ({"fsync": 1, "threads": 2}, "asynchronous"),
        ({"fsync": 1, "io_mode": "async"}, "asynchronous"),
        ({"fsync": 2}, "asynchronous"),
        ({"extra_flags": "direct"}, "asynchronous"),
        ({"extra_flags": "sync", "fsync": "never"}, "synchronous"),
        ({"extra_flags": "dsync", "io_mode": "async", "threads": 4}, "synchronous"),
    ],
)
def test_what_a_power_cut_leaves(given: dict[str, Any], durability: str | None):
    assert PLUGIN.durability(_options(**given)) == durability


def test_its_work_is_what_it_read_and_wrote():
    found = result(KIND, SMALL_FILES, data("sysbench-fileio-rndrw.txt"))
    assert found.work.unit == "1000_transactions"
    assert found.work.amount == pytest.approx((66241 - 2535.38 * 1.0035) / 1000, rel=2e-3), "no fsyncs"
    assert found.work_s == 1.0035
    assert [*found.histograms] == ["latency"]


def test_requests_that_are_only_handed_in_have_no_latency():
    found = result(KIND, {**SMALL_FILES, "io_mode": "async", "threads": 2}, data("sysbench-fileio-rndrw-async.txt"))
    assert not found.histograms
    assert not [measured for measured in found.measurements if "latency" in measured.metric.name]


def test_no_request_at_all_is_unparseable():
    text = data("sysbench-fileio-rndrd.txt").replace(b" 758188\n", b" 0\n")
    for rate in (b" 755039.10", b" 11797.49"):
        text = text.replace(rate, b" 0.00")
    with raises_sentence(Unparseable):
        parse(KIND, {**SMALL_FILES, "mode": "rndrd"}, text)


def test_every_mode_has_a_captured_report():
    assert {case.options.get("mode", "rndrw") for case in GOOD if case.kind == KIND} == {*MODES}
