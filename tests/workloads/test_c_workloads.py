"""Those whose programs are ours, in C (syscalls, stream, allocations): arguments, and outputs that are not whole."""

import pytest

from weighbridge.model.measurement import Unparseable
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


def test_lines_in_another_order_or_of_two_runs_are_unparseable():
    whole = data("syscalls.txt")
    first, second, *rest = whole.splitlines(keepends=True)
    for text in (b"".join([second, first, *rest]), whole + whole, whole + first):
        with pytest.raises(Unparseable):
            parse("syscalls", {}, text)


def test_the_work_of_syscalls_took_all_kinds_time():
    assert result("syscalls", {}, data("syscalls.txt")).work_s == pytest.approx(3.567378542)
