"""Those whose programs are ours, in C (syscalls, stream, allocations): arguments, and outputs that are not whole."""

import pytest

from weighbridge.model.measurement import Unparseable

from .captured import data, parse, result


def test_lines_in_another_order_or_of_two_runs_are_unparseable():
    whole = data("syscalls.txt")
    first, second, *rest = whole.splitlines(keepends=True)
    for text in (b"".join([second, first, *rest]), whole + whole, whole + first):
        with pytest.raises(Unparseable):
            parse("syscalls", {}, text)


def test_the_work_of_syscalls_took_all_kinds_time():
    assert result("syscalls", {}, data("syscalls.txt")).work_s == pytest.approx(3.567378542)
