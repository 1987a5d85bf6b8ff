"""The CPUs that sites have, whose launcher resets the affinity that the user's shell gave us."""

import os

import pytest

from weighbridge.linux import cpus
from weighbridge.linux.cpus import cpus_online


def test_the_cpus_are_the_machines_whatever_the_affinity_of_this_process():
    own = os.sched_getaffinity(0)
    if len(own) < 2:
        pytest.skip("this process has one CPU alone")
    try:
        os.sched_setaffinity(0, {min(own)})  # what taskset(1) does before it starts us
        cpus._cpus.cache_clear()
        assert set(cpus_online()) >= own
        assert os.sched_getaffinity(0) == {min(own)}, "our own affinity stays the user's"
    finally:
        os.sched_setaffinity(0, own)
    assert cpus_online() == sorted(cpus_online())
