"""The paragraph on the methods of a run, for all kinds of runs; and each of its numbers against the run itself.

The sentences are in the golden file of this module. The numbers of the kept runs are compared with ``report --json``
and with the rows of ``run.sqlite``.
"""

import json
import lzma
import math
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from sentences import assert_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.run_result import document_json
from weighbridge.features.archive.entry import entry_of
from weighbridge.model.decisions import GateLook, gate_looks_text
from weighbridge.model.facts import IDLE_CPUS, POLL
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.host import NODE
from weighbridge.model.measurement import Outcome
from weighbridge.model.study import Repetitions
from weighbridge.report.documents import PARAGRAPH, run_methods
from weighbridge.report.export.json import run_result
from weighbridge.report.latex import latex
from weighbridge.report.text.formatting import quantity, share_size
from weighbridge.report.text.methods import methods_sentences
from weighbridge.report.text.verdicts import duration_text
from weighbridge.statistics import planned_looks
from weighbridge.store.extensions import RunExtension
from weighbridge.store.run import DATABASE, RunStore

from .conftest import KEPT
from .explained_runs import crossed, recipe, with_placebo
from .latex_text import is_plain
from .made_up_runs import LOSS, REQUESTS, TCP, TOO_MANY, Workload, rising_load
from .test_html import HOSTILE

RUNS = {
    f"{name}/{path.name.removesuffix('.sqlite.xz')}": path
    for name, folder in (("docs", Path(__file__).parents[2] / "docs/runs"), ("tests", KEPT))
    for path in sorted(folder.glob("*.sqlite.xz"))
}
"""Every run that the project keeps."""
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


@pytest.mark.parametrize("name", RUNS)
def test_every_number_of_a_kept_run_is_in_the_run(name: str, tmp_path: Path):
    (tmp_path / DATABASE).write_bytes(lzma.decompress(RUNS[name].read_bytes()))
    with RunStore(tmp_path) as store, closing(sqlite3.connect(tmp_path / DATABASE)) as database:
        analysis = analyse(store)
        result = run_result(store, analysis)
        sentences, document = methods_sentences(store, analysis, result), document_json(result)
        for sentence in sentences:
            assert_sentence(sentence)
        text = " ".join(sentences)
        for known in sorted(known_texts(document, database), key=len, reverse=True):
            text = text.replace(known, "")
        assert {*NUMBER.findall(text)} <= {*numbers(document, database)}
        assert entry_of(store, analysis).costs, "a registry lists it"
        assert is_plain(latex(" ".join(sentences)))


def known_texts(document: dict[str, Any], database: sqlite3.Connection) -> Iterator[str]:
    """Yield the texts of a run that can have numbers in them."""
    facts = dict(database.execute("select key, value from fact where scope = 'host' order by rowid").fetchall())
    yield from (document["study"], document["run"], document["question"], (document["date"] or "-")[:10])
    yield document["versions"]["weighbridge"] or "-"
    yield from (facts[key] for key in ("CPU", "memory", "operating system", "virtualisation") if facts.get(key))
    yield f"(CPUs {facts.get('CPUs online')} online)"
    yield " ".join((document["kernel"] or "-").split()[:2])
    for host in document["hosts"].values():
        yield from (host[key] for key in ("CPU", "memory", "operating system") if host.get(key))
        yield " ".join(host.get("kernel", "-").split()[:2])
    yield from document["engine"].values()
    for filesystem in document["versions"]["root_filesystems"].values():
        yield from (f"{name} {version}" for name, version in filesystem["measured"].items())
    for row in database.execute("select name, kind from environment union select workload, kind from cell"):
        yield from row
    for explained in document["explanations"]:
        yield from (each["title"] for each in explained["mechanisms"])
    yield from (each["why"] for each in document["left_out"])


def numbers(document: dict[str, Any], database: sqlite3.Connection) -> Iterator[str]:
    """Yield every number that a paragraph on this run can have, as it is written."""
    rule = json.loads(value_of(database, "repetitions") or "{}")
    yield value_of(database, "seed") or "-"
    yield from (f"{document[key]:g}" for key in ("looks",))
    if rule.get("target"):
        yield str(len(planned_looks(rule["min"], rule["max"])))
        yield from (f"{100 * rule['target']:g}", f"{rule['max']:,}")
        yield from NUMBER.findall(duration_text(rule.get("within") or rule.get("budget") or 1.0))
    yield f"{rule.get('blocks') or 0:,}"
    for change in json.loads(value_of(database, "extensions") or "[]"):
        yield from (str(change[key]) for key in ("planned", "blocks", "after"))
    for share in (1.0, document["error_share"]):
        yield from (f"{100 - 5 * share:.4g}", f"{5 * share:.4g}")
    yield f"{document['control_error_share']:.4g}"
    yield f"{100 * (document['margin'] or 0):g}"
    yield from ("10", "6")  # the fewest rounds for an exact interval, and for a verdict
    yield from map(str, document["families"].values())
    costs = [row for row in document["costs"] if row["primary"] and not row["control"] and row["cost"] is not None]
    rounds = [row["rounds"] for row in costs]
    yield from (str(each) for each in ((min(rounds), max(rounds), len(rounds)) if rounds else ()))
    for each in document["remarks"]:
        yield from NUMBER.findall(each["text"])
    missed = {number for number, each in enumerate(document["remarks"]) if each["code"] == "target"}
    yield str(sum(bool(missed & {*row["remarks"]}) for row in costs))
    if document["noise_floor"] is not None:
        yield share_size(document["noise_floor"]).removesuffix("%")
    for row in document["costs"]:
        if row["control"] and row["low"] and row["high"]:
            floor = math.expm1(max(abs(math.log(row["low"])), abs(math.log(row["high"]))))
            yield share_size(floor).removesuffix("%")
    yield str(len(document["sessions"]))
    yield from (f"{each['chosen_s']:.2g}" for each in document["trial_lengths"])
    for row in rows_of_trials(database):
        yield from (str(row), f"{row:,}" if isinstance(row, int) else "-")
    if database.execute("select 1 from sqlite_master where name = 'study'").fetchone():
        ((stored,),) = database.execute("select document from study")
        limits = json.loads(stored)["file"].get("resources") or {}
        yield from (f"{limits.get('cpus') or 0:g}", f"{(limits.get('memory') or 0) / 2**20:,.0f}")


def rows_of_trials(database: sqlite3.Connection) -> Iterator[object]:
    """Yield the counts of rows of a run, and the shortest and the longest median of a workload's trials."""
    counted = "from trial where block is not 0"
    yield from (row[0] for row in database.execute("select count(*) from cell"))
    (explaining,) = database.execute("select count(*) from environment").fetchone()
    yield from range(explaining)
    for what in ("count(*)", "max(block)", "sum(attempt > 0)", "sum(outcome = 'broke')"):
        yield from (row[0] for row in database.execute(f"select {what} {counted}"))
    failed = f"{counted} and outcome not in ('ok', 'broke')"
    yield from (row[0] for row in database.execute(f"select count(*) {failed}"))
    yield from (row[0] for row in database.execute(f"select count(*) {failed} group by environment"))
    trials: dict[tuple[str, str], list[float]] = {}
    for workload, level, seconds in database.execute(
        f"select workload, level, duration_s {counted} and outcome = 'ok'"
    ):
        trials.setdefault((workload, level), []).append(seconds)
    for each in trials.values():
        yield from NUMBER.findall(quantity(median(each), "s"))


def value_of(database: sqlite3.Connection, key: str) -> str | None:
    row = database.execute("select value from run where key = ?", (key,)).fetchone()
    return row[0] if row else None


BRIDGE: dict[str, Any] = {"costs": {"bridge": 1.25}}
TARGET = Repetitions(target="2%", min=10, max=60)
LIMITED = Repetitions(target="2%", within="2min", max=60)
NATIVE_ALONE: dict[str, Any] = {"costs": {}, "aa": False}
OTHERS = Flag(FlagCode.OTHER_WORK, figures={"cpus": 1.8})
MACHINE = {
    "CPU": "Imaginary 3000", "CPUs online": "0-3", "memory": "8.0 GiB", "operating system": "Some Linux 9",
    "kernel": "Linux 6.1.2 #1 SMP", "virtualisation": "none seen",
}  # fmt: skip
KINDS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "fixed": (BRIDGE | {"facts": {"host": MACHINE}}, {}),
    "virtual": (BRIDGE | {"facts": {"host": MACHINE | {"virtualisation": "a hypervisor (unnamed)"}}}, {}),
    "no rounds": (BRIDGE | {"blocks": 0}, {}),
    "two rounds": (BRIDGE | {"blocks": 2}, {}),
    "six rounds": (BRIDGE | {"blocks": 6}, {}),
    "native alone": (NATIVE_ALONE, {}),
    "no control": (BRIDGE | {"aa": False}, {}),
    "failed control": (BRIDGE | {"aa_factor": 1.1}, {}),
    "differences": ({"costs": {"bridge": 1.2}, "workloads": [TCP, Workload("udp", [(LOSS, 0.05, 2.0)])]}, {}),
    "failed trials": (
        BRIDGE | {"failing": {(block, "bridge"): Outcome.DEADLINE for block in (2, 3)}, "again": (2, 3)}, {}
    ),
    "one trial": (NATIVE_ALONE | {"blocks": 1}, {}),
    "overloaded": (rising_load(), {}),
    "disturbed": (BRIDGE | {"flags": {(block, "native"): (OTHERS,) for block in range(1, 11)}
                            | {(block, "native-again"): (OTHERS,) for block in range(1, 11)}}, {}),
    "target reached": (BRIDGE | {"repetitions": TARGET}, {"finished": "yes"}),
    "target missed": (
        {"costs": {"bridge": 1.2}, "workloads": [Workload("w", [(REQUESTS, 1000, 0.3)])],
         "repetitions": Repetitions(target="2%", min=10, max=10)},
        {"finished": "yes"},
    ),
    "time over": (BRIDGE | {"repetitions": LIMITED}, {"finished": "yes", "time_is_over": "yes"}),
    "stopped": (BRIDGE | {"repetitions": Repetitions(blocks=30)}, {"finished": "no"}),
    "stopped, with a target": (BRIDGE | {"repetitions": TARGET}, {"finished": "no"}),
    "extended": (
        BRIDGE | {"blocks": 20, "repetitions": Repetitions(blocks=10)},
        {"finished": "yes", "extensions": json.dumps([asdict(RunExtension(10, 20, 10, 1e9))])},
    ),
    "cut short": (
        BRIDGE | {"blocks": 10, "repetitions": Repetitions(blocks=30)},
        {"finished": "yes", "extensions": json.dumps([asdict(RunExtension(30, 10, 10, 1e9))])},
    ),
    "judged by a gate": (BRIDGE, {"gate_looks": gate_looks_text((GateLook(blocks=10, share=0.8, open=()),))}),
    "explained": (recipe(), {}),
    "explained in every combination": (crossed(), {}),
    "placebo": (with_placebo(), {}),
    "hosts": (
        BRIDGE | {"hosts": ("a", "b"), "facts": {"host": MACHINE, "host b": {NODE: "far", **MACHINE}}}, {}
    ),
    "polled": (BRIDGE | {"facts": {"host": {IDLE_CPUS: POLL}}}, {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_paragraph_of_each_kind_of_run(run: Callable[..., RunStore], kind: str):
    made, info = KINDS[kind]
    with RunStore(run(**made).directory, writable=True) as store:
        for key, value in {"created": "1700000000.0", **info}.items():
            store.set_info(key, value)
    with RunStore(store.directory) as store:
        for sentence in methods_sentences(store, analyse(store)):
            assert sentence[0].isupper() or sentence[0].isdigit(), sentence
            assert sentence.endswith("."), sentence
            assert_sentence(sentence)


def test_it_is_a_paragraph_in_lines(run):
    store = run(**BRIDGE)
    text = run_methods(store, analyse(store))
    assert " ".join(text.split()) == " ".join(methods_sentences(store, analyse(store)))
    assert max(map(len, text.splitlines())) <= PARAGRAPH and "\u00a0" not in text


def test_names_of_a_stranger_are_text(run):
    words = HOSTILE + "\\input{/etc/passwd} 5% a_b $x$ #1 ~ ^^M \x1b[2J\r\n[1cm]"
    facts = {"host": {**dict.fromkeys(MACHINE, words), NODE: words}, "host x": {NODE: words, "CPU": words}}
    store = run(
        costs={words: 1.25}, study=words, question=words, message=words, blocks=6, hosts=(words, "x"), facts=facts,
        workloads=[Workload(words, TCP.metrics, (("factor", words),))], breaking={(2, words, ()): TOO_MANY},
    )  # fmt: skip
    analysis = analyse(store)
    assert is_plain(run_methods(store, analysis, as_latex=True))
    assert "\x1b" not in run_methods(store, analysis)
