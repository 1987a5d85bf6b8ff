"""What our own workloads have to be beyond the contract of all (tests/contracts)."""

import re
import shlex
import signal
from typing import Any

import pytest

from usual_options import NEEDED, usual_options
from weighbridge import registry
from weighbridge.model.command import Command
from weighbridge.model.options import Options
from weighbridge.model.workload import Workload

from .captured import AT, COMMANDS, GOOD, Case, options_of

WORKLOADS = registry.workloads()
EVERY = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
BINDS_TO_EVERY_ADDRESS = {"nuttcp"}
"""Their servers have no option for an address."""
READS_A_LOG = {"pgbench"}
"""Their client's log of transactions is a file, which follows its report."""
SHELL = {"sh", "bash", "dash", "/bin/sh", "/bin/bash"}


def _commands(workload: Workload, options: Options) -> list[Command]:
    warm_up = workload.warm_up(options, AT)
    commands = [workload.command(role, options, AT) for role in workload.roles(options)]
    return commands if warm_up is None else [*commands, warm_up]


def _words(command: Command, *files: bytes) -> set[str]:
    """What stands in its arguments (-Dcoherence.clusterport=15201, http://192.0.2.7:15201/) and in what it reads."""
    texts = [*command.argv, *(text.decode(errors="replace") for text in (command.stdin, *files))]
    return {word for text in texts for word in re.split(r"[\s=/:;]+", text)}


@EVERY
def test_its_options_have_defaults_and_a_schema_that_explains_each(workload: Workload):
    assert workload.options(**NEEDED.get(workload.kind, {})) == usual_options(workload)
    schema = workload.options.model_json_schema()
    assert all(option.get("description") for option in schema["properties"].values())


@EVERY
def test_its_commands_need_no_shell(workload: Workload):
    shells = [command for command in _commands(workload, usual_options(workload)) if command.argv[0] in SHELL]
    assert bool(shells) == (workload.kind in READS_A_LOG)


@EVERY
def test_the_server_binds_and_the_client_connects(workload: Workload):
    options = usual_options(workload)
    if "server" not in workload.roles(options):
        pytest.skip("no network")
    server = _words(workload.command("server", options, AT), *workload.files("server", options, AT).values())
    client = _words(workload.command("client", options, AT))
    assert (AT.listen in server) == (workload.kind not in BINDS_TO_EVERY_ADDRESS)
    assert AT.address not in server
    assert AT.address in client
    assert AT.listen not in client
    assert str(AT.port) in server
    assert str(AT.port) in client


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_it_measures_what_it_declares(case: Case):
    options = case.workload.options.model_validate(case.options)
    declared = [metric for metric in case.workload.metrics(options) if metric.name not in case.lacks]
    assert [measured.metric for measured in case.parse(case.stdout)] == declared


@pytest.mark.parametrize(
    ("kind", "expected"), COMMANDS, ids=lambda part: part if isinstance(part, str) else part["argv"]
)
def test_it_runs_its_program_with_these_arguments(kind: str, expected: dict[str, Any]):
    workload, options = WORKLOADS[kind], options_of(kind, expected.get("options", {}))
    command = workload.command(expected.get("role", "solo"), options, AT)
    assert shlex.join(command.argv) == expected["argv"]
    assert [list(port) for port in command.listens] == expected.get("listens", [])
    assert command.stop_signal == expected.get("stop_signal", signal.SIGTERM)
    assert "generator_threads" not in expected or workload.generator_threads(options) == expected["generator_threads"]
