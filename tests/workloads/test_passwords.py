"""Servers that keep data ask their clients for a secret, where they have one; it is in no command line."""

from dataclasses import replace
from typing import Any

import pytest

from weighbridge.registry import workloads

from .captured import AT

SECRET = "0123456789abcdef0123456789abcdef"
SECRETIVE = replace(AT, password=SECRET)


def commands(kind: str, role: Any) -> Any:
    workload = workloads()[kind]
    options = workload.options()
    at = SECRETIVE
    if role == "server":
        return [workload.command("server", options, at), workload.prepare(options, at), workload.restore(options, at)]
    return [workload.command("client", options, at), workload.warm_up(options, at)]


def told(kind: str, role: Any) -> str:
    """What the role is told beside its command lines, which are kept with the run."""
    ways = [repr((command.env, command.stdin)) for command in commands(kind, role) if command is not None]
    return "".join([*ways, repr(workloads()[kind].files(role, workloads()[kind].options(), SECRETIVE))])


@pytest.mark.parametrize("kind", ["pgbench", "redis-benchmark", "mysql-oltp"])
def test_a_secret_is_told_to_both_sides_and_is_in_no_command_line(kind: str):
    argv = [command.argv for role in ("server", "client") for command in commands(kind, role) if command is not None]
    assert SECRET not in repr(argv) and SECRET not in repr(SECRETIVE)
    assert SECRET in told(kind, "client")
    assert SECRET in told(kind, "server") or "SCRAM-SHA-256$1:" in told(kind, "server")


@pytest.mark.parametrize("kind", ["mysql-oltp"])
def test_files_with_a_secret_are_their_owner_s(kind: str):
    workload = workloads()[kind]
    for role in ("server", "client"):
        for path, data in workload.files(role, workload.options(), SECRETIVE).items():
            assert SECRET.encode() not in data or workload.file_mode(workload.options(), path) == 0o600


def test_without_one_nothing_is_asked_for():
    from weighbridge.workloads.pgbench import postgres

    assert postgres.hba(AT).endswith(b" trust\n") and postgres.hba(SECRETIVE).endswith(b" scram-sha-256\n")
    assert postgres.verifier("a") != postgres.verifier("b")
