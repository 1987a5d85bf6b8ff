"""The format of ``run.sqlite`` in words: what each table and column means. docs/reference/run-file.md shows it."""

from collections.abc import Mapping
from typing import NamedTuple


class TableMeaning(NamedTuple):
    """The meaning of one row of a table, and of each column."""

    row: str
    columns: Mapping[str, str]
    stable: bool = True
    """Whether queries can rely on the table: its columns keep their meaning in later versions of the schema."""


_TRIAL = "The trial (`trial.id`)."
MEANINGS: Mapping[str, TableMeaning] = {
    "run": TableMeaning(
        "A text about the whole run.",
        {"key": "Its name. The stable keys are listed below.", "value": "A text, a number, or JSON."},
    ),
    "study": TableMeaning(
        "The study as it was checked. There is at most one row; runs from before version 5 have none.",
        {"only_one": "Always 1.", "document": "The study as JSON. Its keys can change with each version."},
        stable=False,
    ),
    "environment": TableMeaning(
        "An environment of the study, or the control.",
        {
            "name": "Its name, such as `docker`.",
            "position": "Its place in the study, from 0.",
            "kind": "The kind of environment.",
            "options": "The options of the kind, as JSON.",
            "aa_of": "The baseline, if this is the control; otherwise null.",
        },
    ),
    "cell": TableMeaning(
        "A workload at one level of the options that the study varies.",
        {
            "workload": "The name of the workload.",
            "level": "A JSON object: the varied options with their values, sorted by name; `{}` if none varies.",
            "position": "Its place in the study, from 0.",
            "kind": "The kind of workload.",
            "options": "The options of the kind, as JSON.",
            "label": "The workload and level, for people.",
        },
    ),
    "trial": TableMeaning(
        "A trial that ended, whatever its outcome.",
        {
            "id": "Its number, from 1, in the order in which trials ended.",
            "block": "Its round, from 1. Round 0 is a pilot, which chooses the lengths of trials and does not count.",
            "attempt": "The repetitions of the round, from 0. A round counts once, with its first complete attempt.",
            "workload": "The workload (`cell.workload`).",
            "level": "Its level (`cell.level`).",
            "environment": "The environment (`environment.name`).",
            "outcome": "`ok`, `broke` (overloaded), or why it has no measurements.",
            "message": "The reason if it has no measurements.",
            "started_at": "The start, in seconds since 1970-01-01 UTC.",
            "duration_s": "Seconds of the whole trial, with everything that is not measured.",
            "measured_s": "Seconds for which the measured program ran; 0 if it was not measured.",
            "flags": "A JSON list of unusual conditions: objects with `code`, `where`, `figures` and `text`; "
            "sentences in runs from before version 3.",
            "measured_from_s": "Seconds from the start of the trial to the start of the measured program, or null.",
        },
    ),
    "measurement": TableMeaning(
        "The value of one metric in a trial with the outcome `ok`.",
        {
            "trial": _TRIAL,
            "metric": "The name of the metric. The workload's primary metric is the first of a trial.",
            "unit": "The unit of `value`.",
            "better": "`higher` or `lower`.",
            "value": "The value, in `unit`.",
        },
    ),
    "process": TableMeaning(
        "A process that a trial started.",
        {
            "trial": _TRIAL,
            "role": "`client`, `server`, `solo`, `warm-up`, `check`, or `preparation` with a name.",
            "argv": "A JSON list: its command line.",
            "returncode": "Its exit code; negative for a signal.",
            "duration_s": "Seconds for which it ran.",
            "stdout": "The file with its standard output, in the run directory. An empty output has no file.",
            "stderr": "The file with its standard error.",
        },
    ),
    "sample": TableMeaning(
        "A number that a meter measured for a whole trial.",
        {
            "trial": _TRIAL,
            "site": "The role whose site was metered, or `host NAME`.",
            "name": "The name of the reading. The unit is at its end, such as `_s` for seconds or `_bytes`.",
            "value": "The number.",
        },
    ),
    "series": TableMeaning(
        "Readings of one meter during a trial.",
        {
            "trial": _TRIAL,
            "place": "The role whose site was metered, `host NAME`, or `prometheus`.",
            "name": "The name of the reading, with the unit at its end.",
            "at_s": "A JSON list: the times of the readings, in seconds since the start of the trial.",
            "vals": "A JSON list of the same length: the readings.",
        },
    ),
    "histogram": TableMeaning(
        "The latencies of all requests of a trial.",
        {
            "trial": _TRIAL,
            "metric": "The metric that the latencies belong to.",
            "encoded": "A histogram in nanoseconds in the format of HdrHistogram (V2, compressed, base64).",
        },
    ),
    "fact": TableMeaning(
        "Something that was recorded about a machine, an environment or the programs.",
        {
            "scope": "`host`, `host NAME`, `userland`, `ENVIRONMENT/ROLE`, `path`, `before`, `after`, ...",
            "key": "The name of the fact.",
            "value": "Its value.",
            "at": "When it was recorded, in seconds since 1970-01-01 UTC. A continued run has several values.",
        },
    ),
}
"""The tables of the newest version, in the order of the documentation."""
STABLE_KEYS: Mapping[str, str] = {
    "study": "The name of the study.",
    "question": "The question of the study.",
    "study_text": "The study file as it was written.",
    "baseline": "The environment that the others are compared with.",
    "equivalence": "The margin as a fraction: 0.03 is 3%.",
    "seed": "The seed of the random order.",
    "created": "The start of the run, in seconds since 1970-01-01 UTC.",
    "run_id": "The id of the run: 12 hexadecimal digits.",
    "version": "The version of Weighbridge that began the run.",
    "finished": "`yes` if the run came to its end, `no` if it is going on or was stopped.",
}
"""The keys of the table ``run`` that keep their meaning."""
