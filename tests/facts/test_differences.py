"""In what the hosts of a run differ is kept as data."""

from itertools import count
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weighbridge.facts.differences import COMPARED, about_hosts, host_differences
from weighbridge.model.facts import HostDifference
from weighbridge.model.host import Capabilities, ClockOffset

_numbers = count()


def host(offset: ClockOffset | None = None, machine: str = "", *, this: bool = False, **facts: str) -> Any:
    capabilities = Capabilities(clock=None if offset is None else lambda: offset)
    machine = machine or f"host {next(_numbers)}"
    return SimpleNamespace(machine=machine, this_machine=this, facts=lambda: facts, capabilities=capabilities)


def test_hosts_without_facts_have_none_and_no_differences():
    assert about_hosts({}) == {}
    assert about_hosts({"local": host()}) == {}


def test_facts_are_under_the_host_and_what_is_alike_is_no_difference():
    found = about_hosts({"a": host(kernel="6.1", address="10.0.0.1"), "b": host(kernel="6.1", address="10.0.0.2")})
    assert found == {
        "host a": {"kernel": "6.1", "address": "10.0.0.1"},
        "host b": {"kernel": "6.1", "address": "10.0.0.2"},
    }


def test_what_differs_is_told():
    found = about_hosts({"a": host(kernel="6.1"), "b": host(kernel="6.5")})
    assert found["host differences"] == {
        "kernel": '{"kind":"fact","fact":"kernel","values":[["a","6.1"],["b","6.5"]]}'
    }


def test_a_host_that_does_not_say_is_not_different():
    assert host_differences({"a": {"kernel": "6.1"}, "b": {}}, {}) == {}


def test_clocks_that_are_far_apart_are_told():
    found = about_hosts({"a": host(), "b": host(ClockOffset(-1.5, 0.01)), "c": host(ClockOffset(0.0009, 0.0))})
    assert found["host differences"] == {"clock of b": '{"kind":"clock","host":"b","ahead_s":-1.5}'}
    assert set(found["host b"]) == set(found["host c"]) == {"clock"}
    assert "host differences" not in about_hosts({"b": host(ClockOffset(0.010, 0.0095))})  # less than is known


def test_hosts_of_one_machine_share_its_cpus():
    here, far = host(machine="host", this=True), {"a": host(machine="host a"), "b": host(machine="host a")}
    testbed = host(machine="host")
    testbed.capabilities = Capabilities(disposable=testbed)
    assert about_hosts({"here": here, "t": testbed})["host differences"] == {"CPUs": '{"kind":"shared-cpus"}'}
    assert about_hosts({"t": testbed, "u": testbed}) == {}, "each says so itself"
    values = '"values":[["a","host a"],["b","host a"]]'
    assert about_hosts(far)["host differences"] == {"CPUs of host a": f'{{"kind":"shared-cpus",{values}}}'}
    apart = {"here": here, "also": host(machine="host"), "c": host()}
    assert [*about_hosts(apart)["host differences"]] == ["CPUs of host"]


@given(st.dictionaries(st.sampled_from([*COMPARED, "other"]), st.text(max_size=20)))
def test_any_text_is_taken(facts: dict[str, str]):
    for difference in host_differences({"a": facts, "b": {}}, {}).values():
        assert HostDifference.model_validate_json(difference.model_dump_json()) == difference
