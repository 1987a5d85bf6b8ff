"""Waiting for a descriptor: with as many open files as a run with hundreds of sites has, too."""

import fcntl
import os
import resource

import pytest

from weighbridge.linux.process import wait_readable

BEYOND_SELECT = 1024
"""Where select(2) ends."""


@pytest.fixture(autouse=True)
def _many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard <= 2 * BEYOND_SELECT:
        pytest.skip(f"at most {hard} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * BEYOND_SELECT), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_descriptor_beyond_those_of_select_is_waited_for():
    reading, writing = os.pipe()
    high = fcntl.fcntl(reading, fcntl.F_DUPFD, BEYOND_SELECT)
    assert not wait_readable(high, timeout_s=0.001)
    os.write(writing, b"x")
    assert wait_readable(high, timeout_s=1)
    os.read(high, 1)
    os.close(writing)
    assert wait_readable(high), "its end counts, too"
    os.close(reading)
    os.close(high)
