"""What every workload has to be, whoever wrote it."""

import json
import math
import re

import pytest

from weighbridge import registry
from weighbridge.model.command import Command
from weighbridge.model.measurement import Metric, TrialFailure
from weighbridge.model.plugin import Workload
from weighbridge.model.study import Options

from .captured import AT, GOOD, Case, ended

WORKLOADS = registry.workloads()
EVERY = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
BINDS_TO_EVERY_ADDRESS = {"nuttcp"}
"""Their servers have no option for an address."""
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
def test_it_says_what_it_is(workload: Workload):
    assert re.fullmatch(r"[a-z][a-z0-9-]*", workload.kind)
    assert 10 <= len(workload.summary) <= 100
    assert "\n" not in workload.summary
    assert type(workload).__doc__
    assert issubclass(workload.options, Options)
    assert workload.packages
    assert all(PACKAGE.fullmatch(package) for package in workload.packages)
    assert workload.roles(workload.options()) in [("solo",), ("server", "client")]


@EVERY
def test_its_load_is_one_of_its_options(workload: Workload):
    load = workload.load(workload.options())
    assert not load or load in workload.options.model_fields


@EVERY
def test_it_has_a_port_exactly_when_it_has_a_server(workload: Workload):
    options = workload.options()
    transports, roles = workload.transports(options), workload.roles(options)
    assert bool(transports) == ("server" in roles)
    for role in roles:
        listens = workload.command(role, options, AT).listens
        assert bool(listens) == (role == "server")
        assert all(transport in transports and port == AT.port for transport, port in listens)


@EVERY
def test_its_options_have_defaults_and_a_schema_that_explains_each(workload: Workload):
    assert workload.options.model_validate({}) == workload.options()
    schema = workload.options.model_json_schema()
    json.dumps(schema)
    assert schema["additionalProperties"] is False
    assert all(option.get("description") for option in schema["properties"].values())


@EVERY
def test_its_commands_are_argument_lists(workload: Workload):
    for command in _commands(workload, workload.options()):
        assert type(command.argv) is tuple
        assert all(type(argument) is str for argument in command.argv)
        assert command.argv[0] not in SHELL
        assert "/" not in command.argv[0], "programs are found through PATH"


@EVERY
def test_its_deadlines_are_finite_and_outlast_what_is_expected(workload: Workload):
    options = workload.options()
    commands = _commands(workload, options)
    measured = workload.command(workload.roles(options)[-1], options, AT)
    assert all(math.isfinite(command.deadline_s) for command in commands)
    assert 0 < workload.expected_s(options) < measured.deadline_s
    if "server" in workload.roles(options):
        clients = [command.deadline_s for command in commands if not command.listens]
        assert workload.command("server", options, AT).deadline_s > sum(clients)


@EVERY
def test_the_server_binds_and_the_client_connects(workload: Workload):
    options = workload.options()
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


@EVERY
def test_its_metrics_are_well_formed(workload: Workload):
    metrics = workload.metrics(workload.options())
    assert metrics
    assert len({metric.name for metric in metrics}) == len(metrics)
    for metric in metrics:
        assert isinstance(metric, Metric)
        assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)
        assert metric.unit
        assert metric.better in ("higher", "lower")


@EVERY
def test_nothing_printed_is_a_failure(workload: Workload):
    with pytest.raises(TrialFailure):
        workload.parse(workload.options(), {role: ended() for role in workload.roles(workload.options())})


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_it_measures_what_it_declares(case: Case):
    options = case.workload.options.model_validate(case.options)
    declared = case.workload.metrics(options)
    assert tuple(measured.metric for measured in case.parse(case.stdout)) == declared
