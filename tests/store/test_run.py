"""A run directory: what is committed is there, whoever opens it; what is no run is refused in one sentence."""

import errno
import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge import secret_values
from weighbridge.errors import DiskFull, RunDirectoryError
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.ladder import Rung
from weighbridge.model.measurement import Outcome
from weighbridge.model.names import RunId
from weighbridge.model.secret import SecretName
from weighbridge.model.stored_study import study_json
from weighbridge.model.study import Arm
from weighbridge.model.trial import RoleRecord, Series
from weighbridge.store import schema
from weighbridge.store.consistency import require_consistent
from weighbridge.store.extensions import extend
from weighbridge.store.reader import run_identity
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.store.safe_folder import SafeFolder

from .made import FLAGS, LEVEL, STUDY, TEXT, record

AS_VERSION_3 = "DROP TABLE study; ALTER TABLE trial DROP COLUMN measured_from_s; PRAGMA user_version=3;"


def _refused(directory: Path, *says: str, writable: bool = False) -> None:
    with pytest.raises(RunDirectoryError) as caught:
        RunStore(directory, writable=writable)
    sentence = str(caught.value)
    assert len(sentence.splitlines()) == 1
    assert str(directory) in sentence
    assert all(word in sentence for word in says), sentence


def test_the_identity_of_a_run_is_its_id_and_its_study(run: Path):
    own = run_identity(RunId("0123456789ab"), STUDY.text, study_json(STUDY))
    with RunStore(run, writable=True) as store:
        assert store.identity == own
        extend(store, STUDY.file.repetitions, 9)
        assert store.identity == own
        store.set_info("study_text", f"{TEXT}# more")
        assert store.identity != own


def test_messages_flags_and_facts_have_no_value_of_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(secret_values, "_values", {SecretName("TOKEN"): "hunter2"})
    flags = (Flag(FlagCode.OTHER, text="hunter2"),)
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(STUDY, {"run_id": "0123456789ab"})
        store.save(replace(record(), message="refused: hunter2", flags=flags))
        store.add_facts("before", {"a": "hunter2"})
        store.begin_session({"b": "hunter2"})
    assert b"hunter2" not in (tmp_path / "run" / DATABASE).read_bytes()


def test_a_study_comes_back_as_it_was(run: Path):
    with RunStore(run) as store:
        info = store.info()
        assert info["study_text"] == TEXT
        assert (info["study"], info["baseline"], info["seed"], info["run_id"]) == (
            "small",
            "native",
            "7",
            "0123456789ab",
        )
        assert float(info["equivalence"]) == 0.03
        assert float(info["created"]) > 1e9
        assert [(name, kind, aa_of) for name, kind, _, aa_of in store.environments()] == [
            ("native", "native", None), ("host", "docker", None), ("native-again", "native", "native")]  # fmt: skip
        assert store.environments()[1][2]["network"] == "host"
        assert [(cell.workload, cell.level.factors, cell.id.label) for cell in store.cells()] == [
            ("redis", {"clients": "10"}, "redis (clients=10)"), ("redis", {"clients": "50"}, "redis (clients=50)"),
            ("cpu", {}, "cpu")]  # fmt: skip
        assert [cell.options["clients"] for cell in store.cells() if cell.kind == "redis-benchmark"] == [
            10,
            50,
        ]


def test_a_trial_comes_back_as_it_was(run: Path):
    with RunStore(run) as store:
        assert store.finished() == {record().trial: Outcome.OK}
        (trial,) = store.trials()
        assert trial.flags == FLAGS
        assert (trial.started_at, trial.duration_s, trial.measured_s) == (1001.0, 1.25, 1.0)
        assert [(v.metric, v.unit, v.better, v.value) for v in store.values()] == [
            ("throughput", "Mbit/s", "higher", 5.0), ("jitter", "ms", "lower", 0.0)]  # fmt: skip
        assert store.values()[0].level == LEVEL and LEVEL.text == '{"clients": "10", "pipeline": "1"}'
        assert store.values()[0].flags == FLAGS
        (process,) = store.processes()
        assert process.argv == ["iperf3", "-c", "ü x"]
        assert (run / str(process.stdout)).read_bytes() == b"\x00out\xff"
        assert (run / str(process.stderr)).read_bytes() == b"err"
        assert [(s.site, s.name, s.value) for s in store.samples()] == [
            ("host", "busy_s", 0.5), ("client", "cpu_s", 0.25)]  # fmt: skip


def test_a_trial_that_was_not_measured_has_no_time_and_no_flags_of_it(tmp_path: Path):
    """Older runs computed these flags over a time of 0."""
    took = Flag(FlagCode.GENERATOR_TOOK, figures={"client": 161_700_000.0, "server": 0.0, "cpus": 4.0})
    silent = Flag(FlagCode.NO_READINGS, "host b", text="it is off")
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(STUDY, {"run_id": "0123456789ab"})
        lost = {"outcome": Outcome.ENVIRONMENT_LOST, "measurements": (), "measured_s": None}
        store.save(record(flags=(took, silent), **lost))
        (trial,) = store.trials()
        assert (trial.measured_s, trial.window, trial.flags) == (None, None, (silent,))


def test_series_and_histograms_come_back(tmp_path: Path):
    made = (Series("host a", "load1", (0.0, 1.5), (0.25, 3.0)), Series("server", "cpu_share", (1.0,), (0.5,)))
    with RunStore(tmp_path, writable=True) as store:
        store.begin(STUDY, {})
        first = store.save(record(series=made, histograms={"latency": "HISTFAAAA"}))
        second = store.save(record(block=2, series=made[:1]))
        store.save(record(block=3, outcome=Outcome.UNPARSEABLE, histograms={"latency": "x"}))
    with RunStore(tmp_path) as store:
        assert store.series() == [(first, made[0]), (first, made[1]), (second, made[0])]
        assert store.series(second) == [(second, made[0])]
        assert store.series(99) == []
        assert store.histograms() == [(first, "latency", "HISTFAAAA")]


def test_facts_come_back_with_their_time(run: Path):
    with RunStore(run, writable=True) as store:
        store.add_facts("host", {"kernel": "6.1", "CPU": "x"})
        store.set_info("finished", "yes")
        store.set_info("finished", "no")
    with RunStore(run) as store:
        assert [(scope, key, value) for scope, key, value, _ in store.facts()] == [
            ("host", "kernel", "6.1"), ("host", "CPU", "x")]  # fmt: skip
        assert store.info()["finished"] == "no"


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.OK])
def test_a_failed_trial_is_kept_with_its_message_and_gives_no_values(tmp_path: Path, outcome: Outcome):
    with RunStore(tmp_path, writable=True) as store:
        store.begin(STUDY, {})
        store.save(record(outcome=outcome, message="it's ü\n'); DROP TABLE trial", measurements=()))
    with RunStore(tmp_path) as store:
        assert store.values() == []
        assert store.finished() == {record().trial: outcome}
        assert store.trials()[0].message == "it's ü\n'); DROP TABLE trial"


def test_a_trial_is_there_at_once_for_others_and_after_a_kill(run: Path, tmp_path: Path):
    with RunStore(run, writable=True) as store:
        store.save(record(block=2))
        with RunStore(run) as reader:
            assert len(reader.finished()) == 2
        shutil.copytree(run, tmp_path / "killed")  # as kill -9 leaves it: nothing was closed
    with RunStore(tmp_path / "killed") as reader:
        assert len(reader.finished()) == 2
    with RunStore(tmp_path / "killed", writable=True) as again:
        assert again.save(record(block=3)) == 3


def test_a_closed_run_is_one_file_and_its_outputs(run: Path):
    assert sorted(path.name for path in run.iterdir()) == ["lock", "raw", DATABASE]


def test_a_trial_cannot_be_saved_twice(run: Path):
    with RunStore(run, writable=True) as store:
        with pytest.raises(RunDirectoryError, match="UNIQUE"):
            store.save(record(value=9.0))
        assert [value.value for value in store.values()] == [5.0, 0.0]


def test_a_study_is_frozen_once(run: Path):
    with RunStore(run, writable=True) as store, pytest.raises(RunDirectoryError, match="UNIQUE"):
        store.begin(STUDY, {})
    with RunStore(run) as store:
        assert len(store.environments()) == 3


def test_a_beginning_that_fails_leaves_nothing(tmp_path: Path):
    twice = STUDY.model_copy(update={"arms": (STUDY.arms[0], Arm(**STUDY.arms[0].model_dump() | {"options": STUDY}))})
    with RunStore(tmp_path, writable=True) as store:
        with pytest.raises(RunDirectoryError):
            store.begin(twice, {})
        assert store.info() == {}


# -- what is no run --------------------------------------------------------------------------------


def test_what_is_no_run_is_refused_and_left_as_it_is(tmp_path: Path):
    _refused(tmp_path / "none", "there is no directory")
    _refused(tmp_path, "not a run directory")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    _refused(tmp_path / "file", "not a run directory")
    _refused(tmp_path / "file", writable=True)


@pytest.mark.parametrize(
    "data", [b"", b"garbage", b"SQLite format 3\0", b"SQLite format 3\0" + b"\xff" * 5000, b"\0" * 9000]
)
def test_garbage_is_refused_and_left_as_it_is(tmp_path: Path, data: bytes):
    (tmp_path / DATABASE).write_bytes(data)
    _refused(tmp_path, "is not a Weighbridge run")
    assert [path.name for path in tmp_path.iterdir()] == [DATABASE]
    assert (tmp_path / DATABASE).read_bytes() == data


def test_a_run_that_ended_before_it_began_is_refused(tmp_path: Path):
    RunStore(tmp_path, writable=True).close()
    _refused(tmp_path, "has no data")
    RunStore(tmp_path, writable=True).close()


def test_a_database_that_is_a_folder(tmp_path: Path):
    (tmp_path / DATABASE).mkdir()
    _refused(tmp_path)
    _refused(tmp_path, writable=True)


def test_another_programs_database_is_refused_and_left_as_it_is(tmp_path: Path):
    with sqlite3.connect(tmp_path / DATABASE) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    _refused(tmp_path, "is not a Weighbridge run")
    _refused(tmp_path, "is not a Weighbridge run", writable=True)
    with sqlite3.connect(tmp_path / DATABASE) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
    other.close()


@pytest.mark.parametrize("writable", [True, False])
def test_a_newer_schema_is_refused(run: Path, writable: bool):
    connection = sqlite3.connect(run / DATABASE)
    connection.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    connection.close()
    _refused(run, "newer Weighbridge", f"schema {schema.VERSION + 1}", "upgrade", writable=writable)


@pytest.mark.parametrize("writable", [True, False])
def test_an_older_schema_is_upgraded(run: Path, monkeypatch: pytest.MonkeyPatch, writable: bool):
    before = (run / DATABASE).read_bytes()
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    monkeypatch.setitem(schema.UPGRADES, schema.VERSION - 1, "UPDATE run SET value = 'new' WHERE key = 'question';")
    with RunStore(run, writable=writable) as store:
        assert store.info()["question"] == "new"
        assert len(store.values()) == 2
    assert ((run / DATABASE).read_bytes() == before) is not writable


@pytest.mark.parametrize("writable", [True, False])
def test_a_run_of_version_1_is_read_and_goes_on(tmp_path: Path, writable: bool):
    connection = sqlite3.connect(tmp_path / DATABASE)
    connection.executescript((Path(__file__).parent / "version-1.sql").read_text())
    connection.close()
    before = (tmp_path / DATABASE).read_bytes()
    with RunStore(tmp_path, writable=writable) as store:
        assert store.info()["study"] == "small"
        assert [value.value for value in store.values()] == [5.0, 0.0]
        assert (store.series(), store.histograms()) == ([], [])
        if writable:
            store.save(record(block=2, series=(Series("server", "cpu_share", (1.0,), (0.5,)),)))
            assert len(store.values()) == 4
            assert len(store.series()) == 1
    assert ((tmp_path / DATABASE).read_bytes() == before) is not writable
    with RunStore(tmp_path) as store:
        assert len(store.trials()) == 1 + writable


def test_an_older_file_that_has_the_table_of_studies_already_is_brought_up(run: Path):
    connection = sqlite3.connect(run / DATABASE)
    connection.execute("PRAGMA user_version=4")
    connection.close()
    with RunStore(run) as store:
        assert store.study() is not None


@pytest.mark.parametrize("writable", [True, False])
def test_the_measured_window_of_version_3_was_two_samples(run: Path, writable: bool):
    begun, ended = "(1, 'trial', 'measured_from_s', 0.125)", "(1, 'trial', 'measured_to_s', 1.125)"
    connection = sqlite3.connect(run / DATABASE)
    connection.executescript(f"{AS_VERSION_3} INSERT INTO sample VALUES {begun}, {ended};")
    connection.close()
    with RunStore(run, writable=writable) as store:
        assert [trial.window for trial in store.trials()] == [(0.125, 1.125)]
        assert [(sample.site, sample.name) for sample in store.samples()] == [("host", "busy_s"), ("client", "cpu_s")]
        if writable:
            store.save(record(block=2, measured_from_s=0.25))
            store.save(record(block=3))
            assert [trial.window for trial in store.trials()[1:]] == [(0.25, 1.25), None]


def test_a_run_of_version_4_has_no_checked_study(run: Path):
    connection = sqlite3.connect(run / DATABASE)
    connection.executescript("DROP TABLE study; PRAGMA user_version=4;")
    connection.close()
    with RunStore(run) as store:
        assert store.study() is None
        assert list(store.study_file().environments) == ["native", "host"]


def test_a_damaged_file_is_told_when_it_is_read(run: Path):
    data = bytearray((run / DATABASE).read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    (run / DATABASE).write_bytes(data)
    readers = ["info", "environments", "cells", "facts", "finished", "values", "trials", "processes", "samples",
               "series", "histograms"]  # fmt: skip
    for reader in readers:
        with pytest.raises(RunDirectoryError, match=r"malformed|not a Weighbridge run"), RunStore(run) as store:
            getattr(store, reader)()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i FROM n"


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize("version", [4, schema.VERSION])
@pytest.mark.parametrize(
    "code",
    [
        f"DROP TABLE run; CREATE VIEW run(key, value) AS {ENDLESS};",
        f"CREATE TRIGGER t BEFORE INSERT ON run BEGIN INSERT INTO run {ENDLESS}; END;",
        "DROP TABLE run; CREATE VIRTUAL TABLE run USING fts5(key, value);",
    ],
    ids=["view", "trigger", "virtual"],
)
def test_a_database_with_code_is_refused_before_it_runs(run: Path, code: str, version: int, writable: bool):
    connection = sqlite3.connect(run / DATABASE)
    connection.executescript(f"{code} PRAGMA user_version={version};")
    connection.close()
    _refused(run, "a view, a trigger or a virtual table", writable=writable)


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE INDEX mine ON sample(abs(trial))",
        "CREATE INDEX mine ON sample(trial) WHERE trial > 1",
        "CREATE TABLE mine (number INTEGER CHECK (number > 0))",
        "CREATE TABLE mine (number INTEGER, twice INTEGER GENERATED ALWAYS AS (2 * number))",
    ],
)
def test_an_expression_that_sqlite_would_compute_is_refused(run: Path, definition: str):
    with closing(sqlite3.connect(run / DATABASE)) as database:
        database.execute(definition)
    _refused(run, "an index or a check 'mine'", writable=False)


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DROP TABLE histogram", "it has no table 'histogram'"),
        ("ALTER TABLE fact DROP COLUMN at", "the table 'fact' has no column 'at'"),
    ],
)
def test_a_database_without_a_table_or_a_column_is_damaged(run: Path, change: str, told: str, writable: bool):
    connection = sqlite3.connect(run / DATABASE)
    connection.executescript(change)
    connection.close()
    _refused(run, "is damaged", told, writable=writable)


def test_parts_of_a_study_that_reports_read_have_their_types(run: Path):
    with RunStore(run) as store:
        (text,) = store._db.execute("SELECT document FROM study").fetchone()
    document = json.loads(text)
    for key, value in (("placement", "x"), ("workloads", {"redis": "x"}), ("workloads", 7)):
        changed = {**document, "file": {**document["file"], key: value}}
        with RunStore(run, writable=True) as store:
            store._db.execute("UPDATE study SET document = ?", (json.dumps(changed),))
            with pytest.raises(RunDirectoryError, match=rf"study \(file, {key}.*\): must be 'key: value' pairs"):
                store.study_file()


@pytest.mark.parametrize("table", ["environment", "cell"])
def test_options_that_differ_from_themselves_are_damaged(run: Path, table: str):
    with RunStore(run, writable=True) as store:
        store._db.execute(f"UPDATE {table} SET options = '{{\"a\": [NaN]}}'")
        with pytest.raises(RunDirectoryError, match="expected finite numbers"):
            store.environments() if table == "environment" else store.cells()


def test_a_message_quotes_little_of_what_is_stored(run: Path):
    with RunStore(run, writable=True) as store:
        store._db.execute("UPDATE environment SET aa_of = ? WHERE aa_of IS NOT NULL", ("x" * 2**16,))
    with RunStore(run) as store, pytest.raises(RunDirectoryError) as error:
        require_consistent(store)
    assert len(str(error.value)) < 500
    with RunStore(run, writable=True) as store:
        store._db.execute("UPDATE trial SET outcome = ?", ("x" * 2**16,))
        with pytest.raises(RunDirectoryError, match="is not an outcome of a trial") as error:
            store.finished()
    assert len(str(error.value)) < 500


def test_text_that_is_not_utf_8_is_told_wherever_it_is(run: Path):
    data = (run / DATABASE).read_bytes()
    letters = [at for at, byte in enumerate(data) if chr(byte).isalpha() and byte < 0x80]
    refused = 0
    for at in letters[::9]:
        (run / DATABASE).write_bytes(data[:at] + b"\xad" + data[at + 1 :])
        try:
            with RunStore(run) as store:
                for read in (store.info, store.environments, store.cells, store.facts, store.trials, store.processes):
                    read()
        except RunDirectoryError as error:
            assert str(run) in str(error) and len(str(error).splitlines()) == 1
            refused += 1
    assert refused > len(letters) / 9 / 10


def test_reading_creates_and_changes_nothing(run: Path):
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    run.chmod(0o555)
    with RunStore(run) as store:
        assert store.values()
        assert {path.name for path in run.iterdir()} == {"lock", "raw", DATABASE}
        with pytest.raises(RunDirectoryError):
            store.set_info("a", "b")
    run.chmod(0o755)
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


@pytest.mark.parametrize("name", ["a b", "50%", "a?b#c", "ü"])
def test_any_name_of_a_run_directory(tmp_path: Path, name: str):
    with RunStore(tmp_path / name, writable=True) as store:
        store.begin(STUDY, {})
        store.save(record())
    with RunStore(tmp_path / name) as store:
        assert len(store.values()) == 2


# -- two at once -----------------------------------------------------------------------------------


def test_two_writers_are_refused(run: Path):
    with RunStore(run, writable=True) as first:
        _refused(run, "another 'weighbridge run'", "--out", writable=True)
        first.save(record(block=2))
    with RunStore(run, writable=True) as second:
        assert len(second.finished()) == 2


def test_a_writer_that_was_refused_holds_nothing(tmp_path: Path):
    (tmp_path / DATABASE).write_bytes(b"garbage" * 100)
    open_files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        _refused(tmp_path, "is not a Weighbridge run", writable=True)
    assert len(os.listdir("/proc/self/fd")) <= open_files + 1  # noqa: PTH208
    (tmp_path / DATABASE).unlink()
    RunStore(tmp_path, writable=True).close()


# -- disk full -------------------------------------------------------------------------------------


def test_a_full_disk_keeps_the_earlier_trials(run: Path):
    with RunStore(run, writable=True) as store:
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count={pages}")
        saved = 1
        with raises_sentence(DiskFull):
            for block in range(2, 500):
                store.save(record(block=block, samples=(("host", "busy_s", 1.0),) * 50))
                saved += 1
        with pytest.raises(DiskFull):
            store.add_facts("after", {str(n): "x" * 1000 for n in range(50)})
        assert len(store.finished()) == saved
        store._db.execute("PRAGMA max_page_count=100000")
        store.save(record(block=1000))
    with RunStore(run) as store:
        assert len(store.finished()) == len(store.trials()) == saved + 1
        assert len(store.values()) == 2 * (saved + 1)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_under_the_raw_outputs(run: Path, monkeypatch: pytest.MonkeyPatch, number: int):
    def full(*_):
        raise OSError(number, os.strerror(number))

    with RunStore(run, writable=True) as store:
        with monkeypatch.context() as patch, pytest.raises(DiskFull):
            patch.setattr(SafeFolder, "write_new", full)
            store.save(record(block=2))
        assert len(store.finished()) == len(store.trials()) == len(store.processes()) == 1
        assert store.save(record(block=2)) == 2


def test_another_error_of_the_disk_is_one_sentence(run: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    with RunStore(run, writable=True) as store:
        monkeypatch.setattr(SafeFolder, "write_new", broken)
        with raises_sentence(RunDirectoryError):
            store.save(record(block=2))


def test_an_interruption_rolls_a_half_saved_trial_back(run: Path, monkeypatch: pytest.MonkeyPatch):
    with RunStore(run, writable=True) as store:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(SafeFolder, "write_new", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            store.save(record(block=2))
        assert len(store.finished()) == 1
        store.save(record(block=2))


def test_a_ladder_comes_back_and_so_does_that_of_an_older_run(tmp_path: Path):
    ladder = (Rung("native", None), Rung("host", "native"), Rung("again", "native"))
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(STUDY.model_copy(update={"file": STUDY.file.model_copy(update={"ladder": ladder})}), {})
        assert store.ladder() == ladder
        store.set_info("ladder", '["native", "host", "again"]')
        assert store.ladder() == (*ladder[:2], Rung("again", "host"))
        for damaged in ("[", "7", "[[]]", "[7]"):
            store.set_info("ladder", damaged)
            with pytest.raises(RunDirectoryError):
                store.ladder()


def test_a_study_without_a_ladder_has_none(run: Path):
    with RunStore(run) as store:
        assert store.ladder() == ()


def test_what_was_in_a_folder_before_a_run_stays_when_the_run_is_discarded(tmp_path: Path):
    """A new run that was refused took files of the user's with it, and an empty folder."""
    (tmp_path / "mine/raw").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    for name in ("raw/2024-survey.csv", "lock", "notes.txt"):
        (tmp_path / "mine" / name).write_text("x")
    for name in ("mine", "empty", "new"):
        with RunStore(tmp_path / name, writable=True) as store:
            store.discard()
    left = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*"))
    assert left == ["empty", "mine", "mine/lock", "mine/notes.txt", "mine/raw", "mine/raw/2024-survey.csv"]


@pytest.mark.parametrize("seed", ["", "x", "1.5", "[" * 20000, "[7]"])
def test_a_seed_that_is_not_a_number_is_damage(run: Path, seed: str):
    with sqlite3.connect(run / DATABASE) as file:
        file.execute("UPDATE run SET value = ? WHERE key = 'seed'", (seed,))
    file.close()
    with pytest.raises(RunDirectoryError, match="is damaged: the run's seed"), RunStore(run) as store:
        store.info()


def test_an_empty_output_has_no_file_not_even_that_of_a_trial_that_was_not_committed(run: Path):
    with RunStore(run, writable=True) as store:
        (run / "raw" / "000002.solo.stdout").write_bytes(b"of a killed run")
        program = RoleRecord("solo", ("true",), 0, 0.1, b"", b"a warning")
        number = store.save(replace(record(block=2), roles=(program,)))
        (stored,) = [each for each in store.processes() if each.trial == number]
    assert not (run / stored.stdout).exists()
    assert (run / stored.stderr).read_bytes() == b"a warning"
