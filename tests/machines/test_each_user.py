"""What each kind of user of a whole machine can do, from the installation to what is left after a run was killed."""

import json
from pathlib import Path

import pytest

from documents import doctor_rows

from .guest import Guest
from .rows import User
from .weighing import PROGRAM, Weighbridge, unchanged

pytestmark = pytest.mark.promise("each kind of user of a machine with systemd can measure, and leaves nothing behind")

LIMITS = (Path(__file__).parent / "inside/limits.yaml").read_text()
CPUS, MEMORY = "50000 100000", str(256 * 2**20)
"""Half a CPU and 256 MiB, as control groups have them."""


@pytest.fixture(scope="session")
def weighbridge(machine: Guest, user: User) -> Weighbridge:
    """The user's program, installed."""
    program = Weighbridge(machine, user)
    program.link_userland()
    return program


@pytest.fixture(scope="session")
def weighed(weighbridge: Weighbridge) -> dict:
    """The report of a program that was weighed in six blocks with the choice of environments left to `weigh`."""
    weighbridge.machine.run(weighbridge.user.login, *_sudo(weighbridge), "rm", "-rf", "before", "after", "w.json")
    answer = weighbridge(f"weigh --blocks 6 --out before --export-json w.json -- sh -c '{PROGRAM}'")
    assert answer.code == 0, answer.text
    assert "Traceback" not in answer.text and "Exception ignored" not in answer.text, answer.text
    return json.loads(weighbridge.machine.must(weighbridge.user.login, *_sudo(weighbridge), "cat", "w.json"))


def test_what_pipx_installed_runs(weighbridge: Weighbridge):
    answer = weighbridge("--version")
    assert answer.code == 0 and answer.out.split()[1][0].isdigit(), answer.text


def test_doctor(weighbridge: Weighbridge):
    rows = {row["name"]: row for row in doctor_rows(weighbridge.json("doctor --json"))}
    assert rows["native"]["ready"] and rows["netns"]["ready"], rows
    expected = "podman" if weighbridge.user.weighs_in == "podman-rootless" else "docker"
    if weighbridge.user.weighs_in != "netns":
        assert rows[expected]["ready"], rows[expected]


def test_weigh(machine: Guest, weighbridge: Weighbridge, request: pytest.FixtureRequest):
    with unchanged(machine):
        report = request.getfixturevalue("weighed")
    assert {"native", weighbridge.user.weighs_in} <= {*report["environments"]}, report["environments"]
    costs = [cost for cost in report["costs"] if cost["environment"] == weighbridge.user.weighs_in]
    assert costs and all(cost["rounds"] == 6 for cost in costs if not cost["resource_use"]), costs
    assert all(cost["cost_low"] is not None for cost in costs if not cost["resource_use"]), costs


def test_report_gate_and_compare(weighbridge: Weighbridge, weighed: dict):
    assert weighbridge.json("report before --json")["run"] == weighed["run"]
    gate = weighbridge.json("gate before --budget '*<=900%' --json", codes=(0, 10, 12))
    assert gate["run"] == weighed["run"], gate
    answer = weighbridge(f"weigh --rehearsal --blocks 2 --out after -- sh -c '{PROGRAM}'")
    assert answer.code == 0, answer.text
    changes = weighbridge.json("compare before after --json")
    assert len(changes["runs"]) == 2, changes


def test_limits_are_in_force(machine: Guest, weighbridge: Weighbridge):
    user = weighbridge.user
    login, names, study = user.login, {*user.environments}, {*user.environments, *user.workloads}
    lines = [line for line in LIMITS.splitlines() if not line.startswith("  ") or line.split(":")[0].strip() in study]
    if "podman" in names:
        lines.insert(lines.index("workloads:"), "  podman: {kind: podman, rootless: true, publish: true}")
    if machine.run("root", "test", "-e", "/carried/userlands").code != 0:  # it has the programs itself
        lines.append("userland: {kind: host}")
    machine.must(login, "sh", "-c", 'printf "%s\\n" "$@" > limits.yaml', "sh", *lines)
    machine.run(login, *_sudo(weighbridge), "rm", "-rf", "limits")
    machine.must("root", "sh", "-c", "rm -f /root/stop-watch")
    machine.must(
        "root",
        "sh",
        "-c",
        "nohup python3 /opt/tests/watch.py 3600 /root/stop-watch > /root/watched 2>&1 < /dev/null &",
    )
    with unchanged(machine):
        weighbridge.start("run limits.yaml --yes --out limits", "limits.log")
        log = weighbridge.ended("limits.log", 3000)
    machine.must("root", "touch", "/root/stop-watch")
    machine.must("root", "sh", "-c", "while pgrep -f '[/]watch.py' > /dev/null; do sleep 1; done")
    assert log.rstrip().endswith("ended 0"), log
    states = [json.loads(line) for line in machine.must("root", "cat", "/root/watched").splitlines()]
    machine.must("root", "rm", "/root/stop-watch")
    measured = [state for state in states if any(_runs_program(group) for group in state)]
    assert {_environment(group) for state in measured for group in state if _runs_program(group)} >= names, measured
    for state in measured:
        awake = {_environment(group) for group in state if _works(group)} - {"outside"}
        assert len(awake) <= 1, ("what is not measured is frozen, or has its launcher alone", state)
        limits = {group["site"]: _limits(group) for group in state if _runs_program(group)}
        assert set(limits.values()) == {(CPUS, MEMORY)}, limits
    python = "/opt/pipx/venvs/weighbridge/bin/python"
    answer = machine.run(login, *_sudo(weighbridge), python, "/opt/tests/groups.py")
    assert answer.code == 0 and answer.text.rstrip().endswith("as expected"), answer.text
    report = weighbridge.json("report limits --json")
    assert names <= {*report["environments"]}, report["environments"]


def test_clean_after_kill(machine: Guest, weighbridge: Weighbridge):
    login, where = weighbridge.user.login, weighbridge.user.isolated
    machine.run(login, *_sudo(weighbridge), "rm", "-rf", "killed")
    with unchanged(machine):
        weighbridge.start(f"weigh --in {where} --blocks 500 --out killed -- sleep 7.25", "killed.log")
        found = machine.shell(
            "root",
            "for i in $(seq 600); do for p in $(pgrep -x sleep); do "
            'if grep -qa "7.25" /proc/$p/cmdline && '
            '[ "$(readlink /proc/$p/ns/net)" != "$(readlink /proc/1/ns/net)" ]; '
            "then pgrep -f '[w]eigh --in' | xargs kill -9; echo killed; exit 0; fi; done; sleep 0.2; done; exit 1",
        )
        assert found.out.strip() == "killed", machine.must(login, "cat", "killed.log")
        assert weighbridge("clean --check").code == 1
        answer = weighbridge("clean")
        assert answer.code == 0, answer.text
        assert weighbridge("clean --check").code == 0


def _environment(group: dict) -> str:
    """Return the environment of a site: of "1-native-server" it is "native"."""
    return group["site"].partition("-")[2].rpartition("-")[0]


def _works(group: dict) -> bool:
    """Whether a site is not frozen and has more than its launcher."""
    others = [program for program in group["programs"] if not program.startswith("weighbridge")]
    return bool(others) and "1" not in group["files"]["cgroup.freeze"]


def _runs_program(group: dict) -> bool:
    return bool({"iperf3", "sysbench"} & {*group["programs"]}) and _works(group)


def _limits(group: dict) -> tuple[str, str]:
    """Return the innermost limits of CPU time and memory of a group and those above it."""
    return tuple(
        next((value for value in group["files"][name] if value and not value.startswith("max")), "")
        for name in ("cpu.max", "memory.max")
    )


def _sudo(weighbridge: Weighbridge) -> tuple[str, ...]:
    return ("sudo",) if weighbridge.user.sudo else ()
