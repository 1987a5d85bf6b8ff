"""Those whose programs are ours, in C (syscalls, stream, allocations): arguments, and outputs that are not whole."""

from typing import Any

import pytest
from pydantic import ValidationError

from sentences import raises_sentence
from weighbridge.model.measurement import ProgramFailed, Unparseable
from weighbridge.workloads import allocations, stream, syscalls

from .captured import AT, data, parse, result


def test_the_command_of_syscalls_has_milliseconds():
    options = syscalls.PLUGIN.options.model_validate({"duration": "1500ms"})
    assert syscalls.PLUGIN.command("solo", options, AT).argv == ("weighbridge-syscalls", "1500")
    assert 10.5 < syscalls.PLUGIN.expected_s(options) < 11


def test_the_command_of_stream_has_bytes():
    options = stream.PLUGIN.options.model_validate({"array_size": "1MiB", "rounds": 3, "threads": 2})
    assert stream.PLUGIN.command("solo", options, AT).argv == ("weighbridge-stream", "1048576", "3", "2")
    assert stream.PLUGIN.generator_threads(options) == 2


def test_the_command_of_allocations_has_bytes_and_threads():
    options = allocations.PLUGIN.options.model_validate({"duration": "300ms", "threads": 2, "largest": "4KiB"})
    argv = allocations.PLUGIN.command("solo", options, AT).argv
    assert argv == ("weighbridge-allocations", "300", "2", "4096")
    assert allocations.PLUGIN.generator_threads(options) == 2


@pytest.mark.parametrize("printed", [b'{"threads": 1', b'{"threads": 2, "allocations": 0'])
def test_allocations_of_other_threads_or_none_are_unparseable(printed: bytes):
    whole = data("allocations.txt").replace(b'{"threads": 2', printed)
    with pytest.raises(Unparseable):
        parse("allocations", {"threads": 2}, whole)


@pytest.mark.parametrize(
    "options",
    [
        {"array_size": "64KiB"},
        {"array_size": 4},
        {"rounds": 1},
        {"threads": 0},
    ],
)
def test_options_of_stream_that_make_no_sense(options: dict[str, Any]):
    with raises_sentence(ValidationError):
        stream.PLUGIN.options.model_validate(options)


def test_a_call_that_is_denied_is_a_failure_that_names_it():
    with raises_sentence(ProgramFailed):
        parse("syscalls", {}, data("syscalls-denied.txt"), data("syscalls-denied.stderr"), returncode=1)


def test_memory_that_is_not_there_is_a_failure():
    with raises_sentence(ProgramFailed):
        parse("stream", {}, b"", data("stream-no-memory.stderr"), returncode=1)


@pytest.mark.parametrize("kind", ["syscalls", "stream"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"nanoseconds": 504', b'"nanoseconds": 04'),
        (b'best_nanoseconds": 1', b'best_nanoseconds": -1'),
        (b'"copy"', b'"scale"'),
        (b'"pipe"', b'"pipes"'),
        (b"}\n", b"}"),
        (b"}\n", b"}\n\n"),
        (b"}\n", b"} \n"),
    ],
)
def test_a_line_that_is_another_one_is_unparseable(kind: str, old: bytes, new: bytes):
    whole = data(f"{kind}.txt")
    if old not in whole:
        pytest.skip("it has no such word")
    with raises_sentence(Unparseable):
        parse(kind, {}, whole.replace(old, new, 1))


def test_lines_in_another_order_or_of_two_runs_are_unparseable():
    whole = data("syscalls.txt")
    first, second, *rest = whole.splitlines(keepends=True)
    for text in (b"".join([second, first, *rest]), whole + whole, whole + first):
        with pytest.raises(Unparseable):
            parse("syscalls", {}, text)


def test_the_work_of_syscalls_took_all_kinds_time():
    assert result("syscalls", {}, data("syscalls.txt")).work_s == pytest.approx(3.567378542)
