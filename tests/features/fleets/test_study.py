"""A fleet's study: how many machines it takes, and its text on other ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.features.fleets.study import hosts_of, study_on, text_on, unit_seed
from weighbridge.model.study import Study
from weighbridge.study.loader import check
from weighbridge.study.source import parse

PAIR = """\
study: pair
question: What does it cost?  # of a comment nothing is lost
hosts: {client-side: {kind: testbed}, server-side: {kind: testbed, link: 1gbit}}
placement: {client: client-side, server: server-side}
inside: [server, client]
baseline: native
environments: {native: {kind: native}, again: {kind: native}}
workloads: {tcp: {kind: iperf3}}
"""
HOSTS = "hosts: {client-side: {kind: testbed}, server-side: {kind: testbed, link: 1gbit}}\n"
PLACED = "placement: {client: client-side, server: server-side}\n"
SINGLE = PAIR.replace(HOSTS, "").replace(PLACED, "")
SSH = ({"kind": "ssh", "destination": "root@far"}, {"kind": "ssh", "destination": "near", "address": "10.0.0.2"})


def _study(text: str = PAIR) -> Study:
    return check(parse(text, "study.yaml"))


def test_a_study_of_two_hosts_takes_pairs_the_client_first():
    assert hosts_of(_study()) == ("client-side", "server-side")
    swept = PAIR.replace("client: client-side,", "client: [server-side, client-side],")
    assert hosts_of(_study(swept)) == ("client-side", "server-side")


def test_a_study_of_one_host_takes_single_machines():
    assert hosts_of(_study(SINGLE)) == ("local",)
    named = SINGLE.replace("baseline: native", "hosts: {server-side: {kind: testbed}}\nbaseline: native")
    assert hosts_of(_study(named)) == ("server-side",)


def test_a_study_of_three_hosts_is_refused():
    three = PAIR.replace("hosts: {", "hosts: {third: {kind: testbed}, ").replace(
        "client: client-side", "client: [third, client-side]"
    )
    with raises_sentence(StudyError):
        hosts_of(_study(three))


def test_hosts_are_replaced_and_all_else_stays():
    study = _study()
    text = text_on(study, SSH, "far--near")
    assert "# of a comment nothing is lost" in text
    on = study_on(study, SSH, "far--near")
    assert on.text == text
    named = {name: host.model_dump(exclude_none=True) for name, host in on.file.hosts.items()}
    assert named["client-side"]["destination"] == "root@far" and named["server-side"]["address"] == "10.0.0.2"
    assert on.cells == study.cells and on.arms == study.arms and on.file.placement == study.file.placement


def test_a_study_that_names_no_host_gets_one():
    study = _study(SINGLE)
    on = study_on(study, SSH[:1], "far")
    assert [host.kind for host in on.file.hosts.values()] == ["ssh"] and on.arms == study.arms


def test_a_study_that_cannot_be_on_such_hosts_is_refused():
    with pytest.raises(StudyError, match="bridge"):
        study_on(
            _study(PAIR.replace("again: {kind: native}", "b: {kind: docker, network: bridge}")), SSH, "far--near"
        )


@given(st.integers(0, 2**40), st.text(max_size=20))
def test_each_unit_has_a_seed_of_its_own_that_can_be_made_again(seed: int, unit: str):
    assert 0 <= unit_seed(seed, unit) < 2**31 and unit_seed(seed, unit) == unit_seed(seed, unit)
    assert unit_seed(seed, unit) != unit_seed(seed + 1, unit) or unit_seed(seed, unit + "x") != unit_seed(seed, unit)
