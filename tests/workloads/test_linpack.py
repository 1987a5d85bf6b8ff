"""linpack: HPL's parameters, and reports of runs that failed."""

import pytest

from weighbridge.workloads import linpack

from .captured import AT, data, result

SMALL = {"size": 300, "block": 64, "repeats": 2}


def test_the_parameters_are_hpl_s_by_line():
    options = linpack.PLUGIN.options.model_validate(SMALL)
    ((path, text),) = linpack.PLUGIN.files("solo", options, AT).items()
    lines = text.decode().splitlines()
    assert path == "/tmp/hpccinf.txt"
    assert [line.split()[0] for line in lines[3:13]] == ["8", "2", "300", "1", "64", "0", "1", "1", "1", "16.0"]
    assert lines[5] == "300 300 Ns"
    assert lines[31].startswith("##### This line (no. 32)")
    assert len(lines) == 36


def test_one_process_without_a_daemon_and_with_so_many_threads():
    command = linpack.PLUGIN.command("solo", linpack.PLUGIN.options.model_validate({"threads": 2}), AT)
    assert command.argv == ("env", "--chdir=/tmp", "hpcc")
    assert command.env["OMPI_MCA_ess_singleton_isolated"] == "1"
    assert command.env["OPENBLAS_NUM_THREADS"] == "2"


def test_its_report_is_led_to_standard_output_before():
    assert linpack.PLUGIN.warm_up(linpack.PLUGIN.options(), AT).argv[-2:] == ("/proc/self/fd/1", "/tmp/hpccoutf.txt")


def test_the_work_took_hpl_s_own_time():
    assert result("linpack", {}, data("linpack.txt")).work_s == pytest.approx(
        2.89 + 3.59 + 3.18 + 2.68 + 3.88, rel=1e-3
    )
