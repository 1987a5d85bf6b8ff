"""dd: its command, and outputs that are not whole."""

import pytest

from weighbridge.model.measurement import Unparseable
from weighbridge.workloads.dd import PLUGIN

from .captured import data, ended

OPTIONS = PLUGIN.options.model_validate({"file_size": "16MiB"})


def test_only_a_sync_with_each_write_is_synchronous():
    kept = {sync: PLUGIN.durability(PLUGIN.options(sync=sync)) for sync in ("end", "each", "never")}
    assert kept == {"end": "asynchronous", "each": "synchronous", "never": "asynchronous"}


def test_every_part_of_a_report_is_unparseable():
    whole = data("dd.stderr")
    for end in range(len(whole)):
        with pytest.raises(Unparseable):
            PLUGIN.parse(OPTIONS, {"solo": ended(stderr=whole[:end])})
