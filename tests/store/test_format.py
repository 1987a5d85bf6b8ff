"""The documented format of ``run.sqlite`` is the real one."""

from weighbridge.store.format import MEANINGS, STABLE_KEYS
from weighbridge.store.reading import KEY_TYPES
from weighbridge.store.run import RunStore
from weighbridge.store.schema import columns_by_table


def test_every_table_and_column_has_a_meaning():
    assert {table: {*each.columns} for table, each in MEANINGS.items()} == {
        table: {*columns} for table, columns in columns_by_table().items()
    }


def test_a_run_has_the_stable_keys(run):
    with RunStore(run) as store:
        keys = {*store.info()}
    assert {*STABLE_KEYS} - keys <= {"version", "finished"}, "the runner adds them"
    assert {"run_id", "created", "seed", "equivalence"} <= {*KEY_TYPES} & {*STABLE_KEYS}
