"""Waiting for a descriptor: with as many open files as a run with hundreds of sites has, too."""

import fcntl
import os
import resource
import socket

import pytest

from weighbridge.linux.process import SocketStream, wait_readable

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
    assert not wait_readable(high, 0.001)
    os.write(writing, b"x")
    assert wait_readable(high, 1)
    os.read(high, 1)
    os.close(writing)
    assert wait_readable(high), "its end counts, too"
    os.close(reading)
    os.close(high)


def test_a_stream_on_such_a_descriptor_is_read():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        high = socket.socket(fileno=fcntl.fcntl(ours, fcntl.F_DUPFD, BEYOND_SELECT))
        stream = SocketStream(high)
        with pytest.raises(TimeoutError):
            stream.receive(0.001)
        theirs.sendall(b"piece")
        assert stream.receive(1) == b"piece"
        theirs.close()
        assert stream.receive(1) == b""
