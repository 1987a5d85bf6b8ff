"""What `plan` says of guests before a run."""

import contextlib
import sys

import pytest

from weighbridge.cli.app import main
from weighbridge.features.guests import accelerator
from weighbridge.features.guests.environments import qemu
from weighbridge.model.environment import Needs
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Resources

NO_KVM = Readiness(False, "the CPU has neither vmx nor svm", "use another machine")


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch):
    """Become root or not; without KVM."""
    monkeypatch.setattr(accelerator, "no_kvm", lambda: NO_KVM)
    return lambda user: monkeypatch.setattr(qemu.os, "geteuid", lambda: user)


def state(**options: object) -> Readiness:
    return qemu.PLUGIN.ready(qemu.QemuOptions(**options))


def test_root_has_every_network(as_user):
    as_user(0)
    assert all(state(network=network).ready for network in ("bridge", "user", "none"))
    assert state() == Readiness(True, "no KVM: the CPU has neither vmx nor svm", caveat="emulated")
    large = Needs(resources=Resources.model_validate({"memory": "921600GiB"}))
    assert qemu.PLUGIN.ready(qemu.QemuOptions(), large).detail.startswith("a guest with 943718400 MiB does not fit")


def test_a_bridge_takes_root(as_user):
    as_user(65534)
    assert state() == Readiness(False, "only root can create bridges and taps", "run as root, or set network: user")
    for network in ("user", "none"):
        found = state(network=network)
        assert found.ready and found.caveat == "emulated" and "network: bridge" not in found.detail
        assert found.detail.endswith("only root can create its disk, which is not cached yet")
    assert "network: bridge needs root" in qemu.PLUGIN.ready().detail


@pytest.mark.parametrize("user", [0, 65534])
def test_kvm_that_is_impossible_is_not_ready(as_user, user: int):
    as_user(user)
    assert state(accelerator="kvm", network="user") == NO_KVM


STUDY = """
study: guests
question: What does it cost?
hosts: {here: {kind: local}}
placement: {server: here, client: here}
inside: [server]
baseline: tcg
environments:
  tcg: {kind: qemu, accelerator: tcg}
  guest: {kind: qemu}
  fast: {kind: qemu, accelerator: kvm, optional: true}
workloads: {tcp: {kind: iperf3}}
repetitions: {blocks: 3}
"""


def test_the_plan_tells_what_will_be_emulated_and_what_left_out(as_user, monkeypatch, tmp_path, capsys):
    as_user(0)
    monkeypatch.setattr("weighbridge.runner.preflight.lacking_here", lambda plugin: None)
    monkeypatch.setattr("weighbridge.runner.preflight._without_a_launcher", lambda plugin: None)
    monkeypatch.setattr("weighbridge.runner.preflight.userland_problem", lambda *_, **__: None)
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "guests.yaml"
    file.write_text(STUDY)
    monkeypatch.setattr(sys, "argv", ["weighbridge", "plan", str(file)])
    with contextlib.suppress(SystemExit):
        main()
    told = capsys.readouterr().out
    rows = {line.split()[0]: line for line in told.splitlines() if line.strip()}
    assert rows["guest"].split("qemu")[1].strip() == "yes, emulated"
    assert "skipped: the CPU has neither vmx nor svm; use another machine" in " ".join(
        told.split()
    )  # however wide the terminal
    assert told.count("note: emulated: no KVM: the CPU has neither vmx nor svm") == 1
