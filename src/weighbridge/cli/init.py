"""`weighbridge init`."""

import re
from pathlib import Path

from weighbridge.cli.commands.studies import InitOptions
from weighbridge.cli.files import report_study
from weighbridge.cli.output import write_new
from weighbridge.errors import StudyError
from weighbridge.model.spelling import nearest
from weighbridge.study.source import bundled, plain

TEMPLATE = """\
# A study: one question, answered by `weighbridge run {file}`.
# Every size, rate, time and share has a unit. `weighbridge plan {file}` shows what will run, and for how long.
study: {name}
question: What does a published port cost a Redis server?

inside: [server]              # the roles that run in the environment; the others run natively on the host
# For two hosts, uncomment these three lines (the last one replaces the 'inside' above), and add
# 'attach: interface' to the environment 'bridge' so that other hosts can reach its containers.
# For a machine of your own, write {{kind: ssh, destination: user@machine}} instead of a testbed.
#hosts: {{a: {{kind: testbed, cpus: "0"}}, b: {{kind: testbed, cpus: "1"}}}}   # created on this machine for the run
#placement: {{client: a, server: b}}    # the host of each role
#inside: [server, client]             # both ends in the environment

resources: {{cpus: 1, memory: 512MiB, pin: spread}}   # the same limits for every environment, including native

baseline: native              # the others are compared with it; it is measured twice (the control)
environments:
  native:    {{kind: native}}
  bridge:    {{kind: docker, network: bridge}}
  published: {{kind: docker, network: bridge, publish: true}}

workloads:
  # With 'pipeline: 1', redis-benchmark would need more CPU than Redis and be the bottleneck.
  redis: {{kind: redis-benchmark, requests: 1000000, pipeline: 16, clients: [10, 50]}}   # a list measures each value
  cpu:   {{kind: sysbench-cpu, duration: 2s}}   # for comparison: isolation should cost nothing here

repetitions: {{rounds: 10}}     # each round measures every environment once, in random order
equivalence: 3%               # costs below this do not matter
seed: 1                       # the same seed gives the same order
"""


def init(options: InitOptions) -> None:
    """Write the template, or a bundled study, to a new file."""
    text = _template(options.file) if options.bundled_study is None else _copied(options.bundled_study)
    write_new(options.file, text)
    report_study(options.file)


def _template(file: Path) -> str:
    """Return the template, with the file's name as the study's name."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", file.stem).strip("-.") or "my-study"
    if not re.match("[A-Za-z]", name):
        name = f"study-{name}"
    return TEMPLATE.format(file=file, name=name[:40])


def _copied(study: str) -> str:
    """Return the text of a bundled study. Raises StudyError if the name is unknown."""
    studies = bundled()
    if study not in studies:
        hint = nearest(study, studies) or ". 'weighbridge studies' lists them"
        raise StudyError(f"there is no bundled study '{plain(study)}'{hint}")
    return studies[study]
