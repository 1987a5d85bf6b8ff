"""The sysbench workloads without a server: arguments, fatal errors on standard output, reports without their end."""

import pytest

from sentences import raises_sentence
from weighbridge.model.measurement import Unparseable
from weighbridge.workloads import sysbench_cpu, sysbench_memory, sysbench_mutex, sysbench_threads

from .captured import AT, data, parse

KINDS = pytest.mark.parametrize("kind", ["sysbench-cpu", "sysbench-memory", "sysbench-threads", "sysbench-mutex"])


def test_the_command_of_cpu():
    options = sysbench_cpu.PLUGIN.options.model_validate({"threads": 2, "duration": "1min", "prime_limit": 20000})
    assert " ".join(sysbench_cpu.PLUGIN.command("solo", options, AT).argv) == (
        "sysbench cpu --threads=2 --time=60 --events=0 --cpu-max-prime=20000 run"
    )


def test_the_command_of_memory_is_ended_by_its_duration_alone():
    options = sysbench_memory.PLUGIN.options.model_validate(
        {"block_size": "4KiB", "operation": "read", "access": "rnd"}
    )
    assert " ".join(sysbench_memory.PLUGIN.command("solo", options, AT).argv) == (
        "sysbench memory --threads=1 --time=10 --events=0 --memory-block-size=4096 --memory-total-size=1048576T"
        " --memory-oper=read --memory-scope=global --memory-access-mode=rnd run"
    )


def test_the_command_of_threads():
    options = sysbench_threads.PLUGIN.options.model_validate(
        {"threads": 8, "duration": "2s", "yields": 100, "locks": 4}
    )
    assert " ".join(sysbench_threads.PLUGIN.command("solo", options, AT).argv) == (
        "sysbench threads --threads=8 --time=2 --events=0 --thread-yields=100 --thread-locks=4 run"
    )
    assert sysbench_threads.PLUGIN.generator_threads(options) == 8


def test_the_command_of_mutex_is_not_ended_by_its_time():
    """What is expected is far from the time that it is told, after which sysbench would begin no other event."""
    options = sysbench_mutex.PLUGIN.options.model_validate({"mutexes": 10, "locks": 10**7, "loops": 1})
    command = sysbench_mutex.PLUGIN.command("solo", options, AT)
    assert " ".join(command.argv[:3]) == "sysbench mutex --threads=4"
    assert command.argv[5:] == ("--mutex-num=10", "--mutex-locks=10000000", "--mutex-loops=1", "run")
    assert float(command.argv[3].removeprefix("--time=")) > 10 * sysbench_mutex.PLUGIN.expected_s(options)


@KINDS
def test_a_report_without_its_end_is_unparseable_although_the_figure_is_in_it(kind: str):
    whole = data(f"{kind}.txt")
    with raises_sentence(Unparseable):
        parse(kind, {}, whole[: whole.index(b"Threads fairness")])


def test_zero_is_a_value():
    stdout = data("sysbench-cpu.txt").replace(b"1730.16", b"0.00")
    assert parse("sysbench-cpu", {}, stdout)[0].value == 0.0
