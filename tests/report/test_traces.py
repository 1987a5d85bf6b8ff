"""What tracers saw stands beside the causes, and no cost is made of it."""

import json
import os
from pathlib import Path

import pytest

from analysis.test_explanation import recipe
from report.test_html import page_of
from sentences import raises_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.errors import RunDirectoryError
from weighbridge.model.traced import Trace, TracedItem
from weighbridge.report.export.json import report_json
from weighbridge.report.sections.traces import trace_tables
from weighbridge.store.traces import FILE, FOLDER, read_traces, write_traces


def seen(arm: str, *, tracer: str = "perf", failure: str = "", **counts: int) -> Trace:
    items = tuple(TracedItem(name=name, count=count) for name, count in counts.items())
    return Trace(
        environment="bridge", arm=arm, workload="redis", tracer=tracer, items=items, total=2 * sum(counts.values()),
        failure=failure,
    )  # fmt: skip


TRACES = (seen("bridge", nft_do_chain=30, copy=20), seen("bridge-bare", copy=45, memset=5))


def test_a_table_has_each_function_with_the_mechanisms_and_without_them(run):
    store = run(**recipe())
    before = report_json(store, analyse(store))
    write_traces(store.directory, TRACES)
    (table,) = trace_tables(store)
    assert (
        table.heads == ("function", "bridge, 100 samples", "bridge without these, 100 samples")
        and "not counted" in table.title
    )
    assert [*table.rows] == [("copy", "20.0%", "45.0%"), ("nft_do_chain", "30.0%", "–"), ("memset", "–", "5.0%")]
    assert "nft_do_chain" in page_of(store).text
    assert json.dumps(report_json(store, analyse(store))) == json.dumps(before), "nothing else of the report knows"


def test_events_are_counts_and_a_failure_is_a_sentence(run):
    store = run(**recipe())
    write_traces(store.directory, [seen("bridge", tracer="bpftrace", sys_enter=1234567)])
    (table,) = trace_tables(store)
    assert [*table.rows] == [("sys_enter", "1,234,567")]
    write_traces(store.directory, [seen("bridge", failure="the program 'perf' is not installed")])
    (table,) = trace_tables(store)
    assert table.sentence == "Not traced: the program 'perf' is not installed." and not table.rows


def test_what_a_program_calls_its_functions_is_shown_as_text(run):
    store = run(**recipe())
    hostile = Trace(
        environment="bridge", arm="bridge", workload="redis", tracer="perf", total=1,
        items=(TracedItem(name="<script>alert(1)</script>", count=1),),
    )  # fmt: skip
    write_traces(store.directory, [hostile])
    text = page_of(store).text
    assert "alert(1)" in text


@pytest.mark.parametrize("text", ["", "{}", '{"version": 2, "traces": []}', '{"version": 1, "traces": [{}]}', "\0"])
def test_a_damaged_file_is_none(tmp_path: Path, text: str):
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / FILE).write_text(text)
    with pytest.raises(ValueError):
        read_traces(tmp_path)


def test_a_link_in_the_place_of_the_file_is_not_read(tmp_path: Path):
    assert read_traces(tmp_path) == ()
    path = write_traces(tmp_path, TRACES)
    assert read_traces(tmp_path) == TRACES
    elsewhere = path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(elsewhere)
    with pytest.raises(ValueError):
        read_traces(tmp_path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match="was not written by this run"):
        read_traces(tmp_path)


def test_nothing_is_written_where_a_link_leads(tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / FOLDER).symlink_to(tmp_path / "elsewhere")
    with raises_sentence(RunDirectoryError):
        write_traces(tmp_path, TRACES)
    assert not [*(tmp_path / "elsewhere").iterdir()]
