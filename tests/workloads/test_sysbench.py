"""The sysbench workloads without a server: the time of mutex, and a rate of zero."""

from weighbridge.workloads import sysbench_mutex

from .captured import AT, data, parse


def test_the_command_of_mutex_is_not_ended_by_its_time():
    """What is expected is far from the time that it is told, after which sysbench would begin no other event."""
    options = sysbench_mutex.PLUGIN.options.model_validate({"mutexes": 10, "locks": 10**7, "loops": 1})
    command = sysbench_mutex.PLUGIN.command("solo", options, AT)
    assert " ".join(command.argv[:3]) == "sysbench mutex --threads=4"
    assert command.argv[5:] == ("--mutex-num=10", "--mutex-locks=10000000", "--mutex-loops=1", "run")
    assert float(command.argv[3].removeprefix("--time=")) > 10 * sysbench_mutex.PLUGIN.expected_s(options)


def test_zero_is_a_value():
    stdout = data("sysbench-cpu.txt").replace(b"1730.16", b"0.00")
    assert parse("sysbench-cpu", {}, stdout)[0].value == 0.0
