"""A small study file, and changes to it."""

from weighbridge.model.study import Study
from weighbridge.study.loader import check
from weighbridge.study.source import bundled, parse

NAME = "study.yaml"
LINES = """\
study: small
question: What does it cost?
inside: [server]
resources: {cpus: 1, memory: 512MiB, pin: spread}
baseline: native
environments:
  native: {kind: native}
  bridge: {kind: docker, network: bridge}
workloads:
  tcp: {kind: iperf3, duration: 1s}
  redis: {kind: redis-benchmark, clients: 20}
  cpu: {kind: sysbench-cpu, duration: 1s}
repetitions: {blocks: 10}
equivalence: 3%
seed: 7
"""
FIRST_LOOK = bundled()["first-look"]


def changed(old: str, new: str) -> str:
    """The small study with one place changed."""
    assert LINES.count(old) == 1, old
    return LINES.replace(old, new)


def line_of(text: str, part: str) -> int:
    """The number of the line that holds ``part``."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def loaded(text: str) -> Study:
    """The study of a text."""
    return check(parse(text, NAME))
