"""A fleet of machines that ssh reaches: single ones, pairs of them, what is killed in between, and what is left."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from weighbridge.features.fleets.folder import FleetFolder
from weighbridge.features.fleets.run_commands import FleetStatusDocument, fleet_status
from weighbridge.linux.detached import parsed
from weighbridge.runner import clean

from .far import Far, far_hosts
from .secrets_watch import watching, written_to
from .weighing import Ended, facts, run_id, trials, weighbridge

NAMES = ("a", "b", "c")
PATIENCE_S = 90.0
pytestmark = pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="needs openssh-server")


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Far]]:
    """Three machines, each with a machine id of its own."""
    with far_hosts(tmp_path_factory.mktemp("far"), *NAMES, run_id="f1ee7f1ee7f1") as hosts:
        for number, each in enumerate(hosts, 1):
            each.inside("sh", "-c", f"echo {number:032x} > /run/id && mount --bind /run/id /etc/machine-id")
        yield hosts


@pytest.fixture
def listed(far: list[Far], tmp_path: Path) -> Path:
    """The list of machines."""
    path = tmp_path / "hosts.txt"
    path.write_text("".join(f"{each.host.name} config={each.config}\n" for each in far))
    return path


def _study(folder: Path, *lines: str, seconds: str = "0.1", blocks: int = 2) -> Path:
    path = folder / "study.yaml"
    path.write_text(
        "\n".join((
            "study: many", "question: Does it run?", *lines, "baseline: native", "aa: false",
            "meters: {source: 'off'}", "environments: {native: {kind: native}, other: {kind: native}}",
            f"repetitions: {{blocks: {blocks}}}", "workloads:", f"  nap: {{kind: command, run: 'sleep {seconds}'}}",
        ))
        + "\n"
    )  # fmt: skip
    return path


def _status(folder: Path) -> FleetStatusDocument:
    """As ``fleet status --json``, without a process for each look."""
    return fleet_status(FleetFolder(folder))


def _states(folder: Path) -> dict[str, str]:
    return {run["name"]: run["state"] for run in _status(folder)["runs"]}


def _await(condition: Callable[[], Any], folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        log = folder / "drive.log"
        told = log.read_text() if log.exists() else "no log"
        logs = {path.name: path.read_text()[-500:] for path in folder.glob("runs/*.log")}
        assert time.monotonic() < deadline, (told, logs, weighbridge("fleet", "status", folder))
        time.sleep(0.2)


def _ends(folder: Path) -> None:
    _await(lambda: _status(folder)["driver"] == "ended", folder)


def _driver(folder: Path) -> int:
    process = parsed(json.loads((folder / "fleet.json").read_text())["jobs"][-1])
    assert process is not None
    return process.pid


def _nothing_is_left(folder: Path) -> None:
    for run in folder.glob("runs/*/run.sqlite"):
        inventory = clean.find(run_id(run.parent))
        assert (inventory.left, inventory.alive) == ((), {}), run


def _submit(study: Path, listed: Path, folder: Path, *more: str) -> Ended:
    return weighbridge("fleet", "submit", study, "--on", listed, "--out", folder, "--rehearsal", "--yes", *more)


def test_single_machines_whose_driver_is_killed_go_on_from_their_last_trial(listed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    done = _submit(_study(tmp_path, seconds="1"), listed, folder)
    assert done.code == 0, done
    _await(lambda: all(trials(folder / "runs" / name) for name in NAMES), folder)
    os.kill(_driver(folder), signal.SIGKILL)
    finished = {name: trials(folder / "runs" / name) for name in NAMES}
    assert not all(state == "finished" for state in _states(folder).values())
    done = weighbridge("fleet", "continue", folder, "--yes")
    assert done.code == 0, done
    _ends(folder)
    assert _states(folder) == dict.fromkeys(NAMES, "finished")
    for name in NAMES:
        kept = trials(folder / "runs" / name)
        assert kept[: len(finished[name])] == finished[name] and len(kept) == 4
    nodes = {facts(folder / "runs" / name)["host local", "machine id"] for name in NAMES}
    assert len(nodes) == len(NAMES)
    assert weighbridge("fleet", "continue", folder, "--yes").stdout.startswith("nothing is missing")
    _nothing_is_left(folder)


PAIR = (
    "hosts: {one: {kind: testbed}, other: {kind: testbed}}",
    "placement: {client: one, server: other}",
    "inside: [server, client]",
)
TCP = "  tcp: {kind: iperf3, amount: 16MiB}"


def _pair_study(folder: Path, blocks: int = 1) -> Path:
    path = _study(folder, *PAIR, blocks=blocks)
    path.write_text(path.read_text().replace("  nap: {kind: command, run: 'sleep 0.1'}", TCP))
    return path


def _kill_run(folder: Path, unit: str) -> None:
    """End a unit's own `weighbridge run` at once."""
    wanted = str(folder / "runs" / unit).encode()
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if wanted in cmdline.read_bytes().split(b"\0"):
                os.kill(int(cmdline.parent.name), signal.SIGKILL)


@pytest.mark.long
def test_pairs_of_which_one_is_killed_are_measured_by_the_rounds(listed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    study = _pair_study(tmp_path)
    planned = weighbridge("fleet", "plan", study, "--on", listed, "--rehearsal", "--yes")
    assert planned.code == 0, planned
    done = _submit(study, listed, folder)
    assert done.code == 0, done
    _await(lambda: "running" in _states(folder).values(), folder)
    first = next(name for name, state in _states(folder).items() if state == "running")
    _await(lambda: trials(folder / "runs" / first), folder)
    _kill_run(folder, first)
    _ends(folder)
    states = _states(folder)
    assert len(states) == 3 and {name for name, state in states.items() if state != "finished"} == {first}
    assert [run["exit_code"] for run in _status(folder)["runs"] if run["name"] == first] == [137]
    assert weighbridge("fleet", "continue", folder, "--yes").code == 0
    _ends(folder)
    assert {*_states(folder).values()} == {"finished"}
    for name in states:
        client, server = name.split("--")
        known = facts(folder / "runs" / name)
        assert (known["host one", "node"], known["host other", "node"]) == (f"wb-{client}", f"wb-{server}")
    _nothing_is_left(folder)


def test_a_machine_under_two_names_is_refused_before_anything_runs(
    far: list[Far], listed: Path, tmp_path: Path
) -> None:
    config = far[0].config_with("twice")
    config.write_text(config.read_text().replace("Host a\n", "Host a twin\n"))
    listed.write_text(f"{listed.read_text()}twin config={config}\nnobody config={config}\n")
    done = _submit(_study(tmp_path), listed, tmp_path / "fleet")
    done.must_fail(4, "a and twin are two names for one machine", "nobody")
    assert not (tmp_path / "fleet").exists()


@pytest.mark.long
def test_a_fleet_that_is_cancelled_and_one_of_whose_machines_dies(
    far: list[Far], listed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "fleet"
    names, (dying, other) = NAMES[1:], (NAMES[2], NAMES[1])
    listed.write_text("".join(listed.read_text().splitlines(keepends=True)[1:]))
    assert _submit(_study(tmp_path, seconds="1", blocks=5), listed, folder).code == 0
    _await(lambda: all(trials(folder / "runs" / name) for name in names), folder)
    done = weighbridge("fleet", "cancel", folder)
    assert done.code == 0 and "ended" in done.stdout, done
    assert "stopped" in _states(folder).values()
    _nothing_is_left(folder)
    kept = len(trials(folder / "runs" / dying))
    assert weighbridge("fleet", "continue", folder, "--yes").code == 0
    _await(lambda: len(trials(folder / "runs" / dying)) > kept, folder)
    far[2].host.switch_off()
    _ends(folder)
    assert _states(folder) == {other: "finished", dying: "stopped"}
    told = {run["name"]: (run["exit_code"], run["reason"]) for run in _status(folder)["runs"]}
    assert told[dying][0] == 8 and told[dying][1]
    _nothing_is_left(folder)


SECRET_SERVER = (
    "use IO::Socket::INET; exit 9 unless $ENV{PW} =~ /^canary/; "
    "$s = IO::Socket::INET->new(LocalAddr => '{listen}:{port}', Listen => 9, ReuseAddr => 1); 1 while $s->accept"
)
SECRET_CLIENT = "use IO::Socket::INET; IO::Socket::INET->new('{address}:{port}') or exit 8"


def test_runs_get_secrets_that_no_machine_stores(listed: Path, tmp_path: Path, far: list[Far]) -> None:
    """Neither the driver's folder, nor a command line here or there, nor a file on the machines has the value."""
    folder, value = tmp_path / "fleet", f"canary{token_hex(12)}"
    study = _study(tmp_path)
    command = json.dumps({
        "kind": "command", "server": ["perl", "-e", _braces(SECRET_SERVER)],
        "client": ["perl", "-e", _braces(SECRET_CLIENT)], "server_env": {"PW": "${secret:PW}"},
    })  # fmt: skip
    text = study.read_text()
    study.write_text(text[: text.index("  nap:")] + f"  ask: {command}\n")
    with watching(value) as watch:
        refused = _submit(study, listed, folder)
        refused.must_fail(3, "PW")
        done = weighbridge(
            "fleet", "submit", study, "--on", listed, "--out", folder, "--rehearsal", "--yes", "--env", "PW",
            env={"PW": value},
        )  # fmt: skip
        assert done.code == 0, done
        _ends(folder)
        assert _states(folder) == dict.fromkeys(NAMES, "finished")
        report = weighbridge("fleet", "report", folder, "--html", tmp_path / "fleet.html")
    assert watch.command_lines == set()
    assert watch.files_with_it(written_to(tmp_path)) == []
    assert value not in report.stdout + report.stderr + done.stdout
    for each in far:
        new = "find /run /home /var/cache -xdev -type f -mmin -30 -size -4096k"
        search = f"{new} -exec grep -lsF {value} {{}} + || :"
        assert each.inside("sh", "-c", search) == "", each.host.name


def _braces(program: str) -> str:
    """A program of a command whose only placeholders are the server's."""
    written = program.replace("{", "{{").replace("}", "}}")
    for name in ("listen", "address", "port"):
        written = written.replace(f"{{{{{name}}}}}", f"{{{name}}}")
    return written
