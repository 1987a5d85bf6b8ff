"""compress: arguments, which bytes are told, and the programs' own words."""

from dataclasses import replace
from typing import Any

import pytest

from weighbridge.workloads import compress

from .captured import AT, data, ended

PBZIP2 = {"program": "pbzip2"}
DECOMPRESS = {"direction": "decompress"}


def _commands(given: dict[str, Any]) -> list[str]:
    options = compress.PLUGIN.options.model_validate(given)
    warm_up, command = compress.PLUGIN.warm_up(options, AT), compress.PLUGIN.command("solo", options, AT)
    return [" ".join(warm_up.argv), " ".join(command.argv)]


def test_the_corpus_is_written_before_what_is_measured():
    assert _commands({"size": "1MiB", "threads": 2}) == [
        "weighbridge-corpus 1048576 /tmp/weighbridge-corpus xz --version",
        "xz --verbose --keep --force -6 --threads=2 --block-size=1MiB /tmp/weighbridge-corpus",
    ]
    assert _commands({**PBZIP2, "size": "1MiB", "level": 9}) == [
        "weighbridge-corpus 1048576 /tmp/weighbridge-corpus pbzip2 --version",
        "pbzip2 --verbose --keep --force -9 -p1 /tmp/weighbridge-corpus",
    ]


def test_what_is_decompressed_was_compressed_before_what_is_measured():
    assert _commands({**DECOMPRESS, "size": "1MiB"}) == [
        "weighbridge-corpus 1048576 /tmp/weighbridge-corpus"
        " xz --verbose --keep --force -6 --threads=1 --block-size=1MiB /tmp/weighbridge-corpus",
        "xz --verbose --test --threads=1 /tmp/weighbridge-corpus.xz",
    ]
    assert _commands({**DECOMPRESS, **PBZIP2, "threads": 2})[1] == (
        "pbzip2 --verbose --test -p2 /tmp/weighbridge-corpus.bz2"
    )


def test_the_speed_is_of_the_text_and_by_the_launcher_s_clock():
    options = compress.PLUGIN.options.model_validate({"size": "8MiB"})
    done = replace(ended(stderr=data("compress-xz.stderr")), duration_s=4.0)
    (speed,) = compress.PLUGIN.parse(options, {"solo": done}).measurements
    assert speed.value == pytest.approx(8.388608 / 4)
    assert speed.metric.unit == "MB/s"
