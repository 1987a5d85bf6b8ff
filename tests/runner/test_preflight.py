"""What a study asks for that this machine has not."""

import pytest

from weighbridge.runner import preflight as machine
from weighbridge.study.loader import check
from weighbridge.study.source import parse

START = "study: s\nquestion: q\nbaseline: n\nenvironments: {n: {kind: native}}\n"
TCP = "workloads: {tcp: {kind: iperf3}}\n"


@pytest.mark.parametrize(
    ("more", "about"),
    [
        ("resources: {pin: {server: '1', client: '0'}}", []),
        ("resources: {pin: {server: '0-1', client: '0,7'}}", ["resources: pin: client: CPU 7"]),
        ("hosts: {a: {kind: testbed, cpus: '0-3'}}", ["hosts: a: cpus: CPU 2"]),
        ("hosts: {a: {kind: ssh, destination: a}}\nresources: {pin: {server: '7'}}", []),  # it may have that one
        ("resources: {cpus: 3}", ["resources: cpus: 3"]),
    ],
)
def test_cpus_that_are_not_here_are_told_before_the_run(monkeypatch: pytest.MonkeyPatch, more: str, about: list[str]):
    monkeypatch.setattr(machine, "cpus_online", lambda: [0, 1])
    told = machine.warnings(check(parse(START + TCP + more, "a.yaml")))
    assert len(told) == len(about)
    assert all(text.startswith(start) for text, start in zip(told, about, strict=True))
