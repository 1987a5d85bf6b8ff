"""The expected duration of a set-up: what is built, what opens at the same time, what is emulated."""

from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.features.guests import accelerator
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Study
from weighbridge.runner import set_up_time
from weighbridge.runner.set_up_time import omits_unapproved, set_up_s
from weighbridge.study.loader import check
from weighbridge.study.source import parse

STUDY = """\
study: any
question: How long until it measures?
hosts: {{a: {{kind: {host}}}, b: {{kind: {host}}}}}
placement: {{client: a, server: b}}
inside: [server, client]
baseline: native
environments:
  native: {{kind: native}}
  host: {{kind: docker, network: host}}
  overlay: {{kind: docker, network: overlay}}
  macvlan: {{kind: docker, network: macvlan}}
workloads: {{tcp: {{kind: iperf3}}}}
repetitions: {{rounds: 10}}
"""


def study(host: str = "testbed") -> Study:
    return check(parse(STUDY.format(host=host), "any.yaml"))


@pytest.fixture(autouse=True)
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is in the cache, and this machine has many CPUs."""
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path))
    cpus(monkeypatch, 64)


def cpus(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(set_up_time, "cpus_online", lambda: [*range(number)])


def test_a_root_filesystem_counts_until_it_is_built(monkeypatch: pytest.MonkeyPatch):
    missing_s = set_up_s(study())
    monkeypatch.setattr(set_up_time, "cached", lambda *_: object())
    assert missing_s - set_up_s(study()) == pytest.approx(registry.userlands()["packages"].build_s)


def test_a_root_filesystem_of_an_unapproved_image_does_not_count(tmp_path: Path):
    text = STUDY.format(host="testbed") + f"userland: {{kind: saved-image, path: {tmp_path / 'none.tar'}}}\n"
    foreign = check(parse(text, "any.yaml")).model_copy(update={"approved": False})
    assert omits_unapproved(foreign)
    assert not omits_unapproved(foreign.model_copy(update={"approved": True}))
    assert not omits_unapproved(study().model_copy(update={"approved": False})), "packages need no approval"


def test_hosts_that_do_not_depend_on_one_another_open_at_the_same_time(monkeypatch: pytest.MonkeyPatch):
    engines = study()
    rest = engines.without([arm.name for arm in engines.arms if arm.name not in ("native", "host", "native-again")])
    assert set_up_s(rest) == set_up_s(engines), "further engines are further chains"
    cpus(monkeypatch, 1)
    docker = registry.environments()["docker"]
    assert set_up_s(engines) - set_up_s(rest) >= 4 * docker.engine_s, "two more engines on each of two hosts"


def test_an_emulated_guest_takes_longer_and_is_built_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(accelerator, "no_kvm", lambda: None)
    with_kvm_s = set_up_s(study("guest"))
    monkeypatch.setattr(accelerator, "no_kvm", lambda: Readiness(False, "no KVM"))
    assert set_up_s(study("guest")) > with_kvm_s + 20
    hosts, options = registry.hosts()["guest"], study("guest").file.hosts["a"]
    assert with_kvm_s > hosts.build_s(options, Path("/nonexistent")) > 60, "its system is built"


def test_more_sites_of_a_workload_take_longer(monkeypatch: pytest.MonkeyPatch):
    cpus(monkeypatch, 2)
    one = study("guest")
    ten = one.model_copy(update={"cells": tuple(cell.model_copy(update={"sites": 10}) for cell in one.cells)})
    assert set_up_s(ten) > set_up_s(one) + 3 * registry.environments()["docker"].opening_s
