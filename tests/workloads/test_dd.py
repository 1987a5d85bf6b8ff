"""dd: its command, and outputs that are not whole."""

import pytest
from pydantic import ValidationError

from sentences import raises_sentence
from weighbridge.model.measurement import ProgramFailed, Unparseable
from weighbridge.workloads.dd import PLUGIN

from .captured import data, ended

OPTIONS = PLUGIN.options.model_validate({"file_size": "16MiB"})


def test_a_file_that_is_no_whole_number_of_blocks_is_refused():
    with raises_sentence(ValidationError):
        PLUGIN.options.model_validate({"file_size": "1000B", "block_size": "512B"})


def test_only_a_sync_with_each_write_is_synchronous():
    kept = {sync: PLUGIN.durability(PLUGIN.options(sync=sync)) for sync in ("end", "each", "never")}
    assert kept == {"end": "asynchronous", "each": "synchronous", "never": "asynchronous"}


def test_a_failure_has_dds_own_words():
    with raises_sentence(ProgramFailed):
        PLUGIN.parse(OPTIONS, {"solo": ended(stderr=data("dd-no-folder.stderr"), returncode=1)})
    with raises_sentence(ProgramFailed):
        PLUGIN.parse(OPTIONS, {"solo": ended(stderr=data("dd-full.stderr"), returncode=1)})


@pytest.mark.parametrize("size", ["32MiB", "8MiB"])
def test_another_number_of_bytes_is_unparseable(size: str):
    with pytest.raises(Unparseable):
        PLUGIN.parse(PLUGIN.options.model_validate({"file_size": size}), {"solo": ended(stderr=data("dd.stderr"))})


def test_every_part_of_a_report_is_unparseable():
    whole = data("dd.stderr")
    for end in range(len(whole)):
        with pytest.raises(Unparseable):
            PLUGIN.parse(OPTIONS, {"solo": ended(stderr=whole[:end])})
