"""fio and metadata: options that fit together, what fio itself says, reports that contradict themselves."""

import json
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.model.flag import FlagCode
from weighbridge.model.measurement import Unparseable
from weighbridge.workloads.fio import PLUGIN, FioOptions
from weighbridge.workloads.metadata import PLUGIN as METADATA
from weighbridge.workloads.metadata import MetadataOptions

from .captured import AT, GOOD, Case, ended

CASES = [case for case in GOOD if case.kind in ("fio", "metadata")]
PARTS = {"read": "read", "write": "write", "fsync": "sync"}


def _options(**given: Any) -> FioOptions:
    return FioOptions.model_validate(given)


def _job(case: Case) -> dict[str, Any]:
    return json.loads(case.stdout)["jobs"][0]


@pytest.mark.parametrize("case", [case for case in CASES if case.kind == "fio"], ids=str)
def test_the_figures_are_fio_s_own(case: Case):
    found, job = {each.metric.name: each.value for each in case.parse(case.stdout)}, _job(case)
    for kind, name in PARTS.items():
        if f"{kind}s" not in found:
            assert not job[name]["lat_ns"]["N"]
            continue
        own = job[name]["lat_ns"]
        percentiles = {float(share): ns for share, ns in own["percentile"].items()}
        for which, share in {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}.items():
            assert found[f"{kind}_latency_{which}"] == pytest.approx(percentiles[share] / 1e6, rel=0.02)
        assert found[f"{kind}_latency_mean"] == pytest.approx(own["mean"] / 1e6)
        if kind != "fsync":
            assert found[f"{kind}s"] == pytest.approx(job[name]["iops"])
            assert found[f"{kind}_throughput"] == pytest.approx(job[name]["bw_bytes"] / 2**20)
    if "fsyncs" in found:
        requests = found["writes"] + found.get("reads", 0)  # fio syncs after reads, too, while the writes are so many
        assert found["fsyncs"] == pytest.approx(requests / case.options["fsync"], rel=0.05)


@pytest.mark.parametrize("case", [case for case in CASES if case.kind == "fio"], ids=str)
@pytest.mark.parametrize("given", [{}, {"cold": False}, {"direct": True}], ids=str)
def test_a_file_that_is_read_over_and_over_comes_from_a_cache(case: Case, given: dict[str, Any]):
    """Where its page cache was empty at first, and nothing passes it."""
    job, asked = _job(case), _options(**(case.options | given))
    times = job["read"]["io_bytes"] / asked.file_size
    flags = PLUGIN.parse(asked, {"solo": ended(case.stdout)}).flags
    found = [flag.figures["times"] for flag in flags if flag.code is FlagCode.READ_AGAIN]
    through = asked.cold and not asked.direct and times > 1.05
    assert found == ([pytest.approx(times, abs=0.06)] if through else [])


def test_new_files_are_empty():
    made, kept = (
        METADATA.room(MetadataOptions.model_validate({"operation": each, "files": 10, "file_size": "1MiB"}))
        for each in ("create", "stat")
    )
    assert made < 2**20 < 10 * 2**20 < kept


@pytest.mark.parametrize("case", [case for case in CASES if case.kind == "metadata"], ids=str)
def test_every_file_was_seen(case: Case):
    found, own = {each.metric.name: each.value for each in case.parse(case.stdout)}, _job(case)["read"]
    assert own["total_ios"] == own["clat_ns"]["N"] == case.options["files"] * case.options["jobs"]
    assert found["latency_mean"] == pytest.approx(own["clat_ns"]["mean"] / 1e6)
    assert found["latency_p99"] == pytest.approx(own["clat_ns"]["percentile"]["99.000000"] / 1e6, rel=0.02)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_histogram_of_other_requests_than_the_report_s_is_no_result(case: Case):
    report = json.loads(case.stdout)
    for part in report["jobs"][0].values():
        for clock in ("lat_ns", "clat_ns"):
            if isinstance(part, dict) and (bins := part.get(clock, {}).get("bins")):
                bins[next(iter(bins))] += 1
    with raises_sentence(Unparseable):
        case.parse(json.dumps(report).encode())


def test_what_was_never_asked_for_has_no_latency_of_zero():
    (case,) = (case for case in CASES if case.file == "fio-mix.json")
    report = json.loads(case.stdout)
    report["jobs"][0]["sync"] = {"total_ios": 0, "lat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}}
    with raises_sentence(Unparseable):
        case.parse(json.dumps(report).encode())


@pytest.mark.parametrize(
    ("given", "durability"),
    [
        ({}, "asynchronous"),
        ({"fsync": 1}, "synchronous"),
        ({"fsync": 2}, "asynchronous"),
        ({"fsync": 1, "engine": "io_uring", "depth": 4}, "asynchronous"),
        ({"extra_flags": "dsync", "engine": "io_uring", "depth": 4}, "synchronous"),
        ({"mode": "read"}, None),
    ],
)
def test_durability_is_of_a_write_that_was_counted(given: dict[str, Any], durability: str | None):
    assert PLUGIN.durability(_options(**given)) == durability


def test_the_command_says_all_that_fio_would_choose_by_itself():
    options = _options(fsync=4, sync_mode="fdatasync", jobs=2, file_size="1MiB", read_share=70, extra_flags="sync")
    told = {
        "--rw=randrw", "--rwmixread=70", "--bs=4096", "--ioengine=psync", "--iodepth=1", "--direct=0", "--runtime=10",
        "--time_based=1", "--numjobs=2", "--size=524288", "--fdatasync=4", "--sync=sync", "--fallocate=none",
        "--refill_buffers=1", "--randrepeat=1", "--randseed=1",
        "--directory=/srv/fio/randrw-2x524288",
    }  # fmt: skip
    assert told <= {*PLUGIN.command("solo", options, AT).argv}
    assert PLUGIN.prepare(options, AT).argv[4] == "/srv/fio/randrw-2x524288"


def test_each_operation_on_files_begins_with_what_it_needs():
    options = {each: MetadataOptions(operation=each) for each in ("create", "stat", "delete")}
    assert [METADATA.prepare(each, AT) is not None for each in options.values()] == [False, True, False]
    restored = {name: METADATA.restore(each, AT) for name, each in options.items()}
    assert restored["stat"] is None
    assert restored["create"] is not None and restored["create"].argv[-1] == "true"
    assert restored["delete"] is not None and "--create_only=1" in restored["delete"].argv
    assert [METADATA.durability(each) for each in options.values()] == ["asynchronous", None, "asynchronous"]


@pytest.mark.parametrize(("cold", "option"), [(True, "--invalidate=1"), (False, "--invalidate=0")])
def test_fio_drops_its_file_from_the_page_cache_only_if_it_is_cold(cold: bool, option: str):
    command = PLUGIN.command("solo", _options(cold=cold), AT)
    assert [word for word in command.argv if word.startswith("--invalidate")] == [option]
