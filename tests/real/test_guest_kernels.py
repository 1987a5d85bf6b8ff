"""Two guests of one run with a kernel each: what the environments differ in is what their sites say."""

from pathlib import Path

import pytest

from .machine import Machine
from .weighing import CPU, NATIVE, facts, trials, weighbridge, write_study

pytestmark = [  # two kernels are fetched and two guests are booted
    pytest.mark.long,
    pytest.mark.promise("each guest of a run has the kernel that its environment names"),
]
TCP = "tcp: {kind: iperf3, amount: 16MiB}"


def guest(name: str, kernel: str, more: str = "network: none") -> str:
    return f"{name}: {{kind: qemu, accelerator: tcg, {more}, kernel: {kernel}}}"


def test_each_guest_has_the_kernel_that_it_names(machine: Machine, tmp_path: Path):
    environments = (NATIVE, guest("full", "linux-image-amd64"), guest("small", "linux-image-cloud-amd64"))
    study = write_study(tmp_path, environments=environments, workloads=(CPU,))
    done = weighbridge("run", study, "--out", tmp_path / "run", "--yes")
    assert done.code == 0, done
    assert {(row["environment"], row["outcome"]) for row in trials(tmp_path / "run")} == {
        ("native", "ok"), ("full", "ok"), ("small", "ok"),
    }  # fmt: skip
    known = facts(tmp_path / "run")
    full, small = (known[f"{name}/server", "version: kernel"] for name in ("full", "small"))
    assert small.endswith("-cloud-amd64") and full == small.replace("-cloud", "")
    assert "linux-image-cloud-amd64" in known["small/server", "kernel package"]
    machine.must_be_unchanged()


def test_a_kernel_without_the_driver_and_one_that_is_none_are_told(machine: Machine, tmp_path: Path):
    for kernel, nic, code, says in (
        ("linux-image-cloud-amd64", "e1000", 4, "has no driver e1000"),
        ("linux-image-none-such", "virtio", 5, "linux-image-none-such"),
    ):
        study = write_study(tmp_path, environments=(NATIVE, guest("guest", kernel, f"nic: {nic}")), workloads=(TCP,))
        weighbridge("run", study, "--out", tmp_path / kernel, "--yes").must_fail(code, says)
    machine.must_be_unchanged()
