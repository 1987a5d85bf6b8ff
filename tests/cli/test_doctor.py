"""`weighbridge doctor`: what is ready and what makes the rest so; with `--noise`, of a run of which nothing stays."""

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from documents import doctor_rows, fits
from sentences import assert_sentence
from weighbridge import registry
from weighbridge.cli import output
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.cli.doctor import _as_weighed, _group_lines, _note_lines, rows_of
from weighbridge.errors import Interrupted
from weighbridge.linux import packages
from weighbridge.model.facts import InterruptRate
from weighbridge.model.plugin import Readiness
from weighbridge.runner import known_noise, planned, preflight, userlands
from weighbridge.runner import run as running
from weighbridge.statistics import visible_effect
from weighbridge.store.run import RunStore

from .command_line import Weighbridge, users_machine


def test_doctor_says_what_makes_the_rest_ready(weighbridge: Weighbridge):
    found = json.loads(weighbridge("doctor", "--json").out)
    names = {row["name"] for row in found["environments"]}
    assert names >= {"native", "docker", "unshare"} and "wrapper" not in names, "it is no name of --in"
    assert {row["name"] for row in found["userlands"]} >= {"packages", "image", "directory", "host"}
    fits(SchemaDocument.DOCTOR, found)
    for row in doctor_rows(found):
        assert row["ready"] or (row["detail"] and row["remedy"]), row
    said = weighbridge("doctor", "--all")
    assert said.code == 0
    assert "not ready" in said.out


def test_doctor_is_a_screen_that_begins_with_what_weigh_compares(
    weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    users_machine(monkeypatch, tmp_path, programs={"mmdebstrap", "newuidmap"}, ids="")
    monkeypatch.setattr(output.out(), "width", 80)
    lines = weighbridge("doctor").out.splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 80
    assert "..." not in "\n".join(lines), "no reason is cut off"
    assert lines[0].startswith("weigh compares by default") and lines[1].startswith("  a program")
    for group in ("machine", "engines", "virtual machines", "load generators", "storage", "network"):
        assert any(line.startswith(f"  {group} ") for line in lines), group
    assert "weighbridge doctor --all" in lines[-1]


def test_every_plug_in_is_counted_in_a_group(weighbridge: Weighbridge):
    found = json.loads(weighbridge("doctor", "--json").out)
    grouped = {row["name"]: row["group"] for row in doctor_rows(found)}
    assert {name for name, group in grouped.items() if not group} == {
        "native", "local", "pod", "kubernetes", "slurm",
        *(row["name"] for row in found["machine"])
    }  # fmt: skip
    assert {grouped[name] for name in ("qemu", "xen", "guest")} == {"virtual machines"}
    assert grouped["docker macvlan"] == grouped["netns"] == "network" and grouped["bubblewrap"] == "sandboxes"


def test_a_cluster_has_rows_of_its_own(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    def survey(_: object, context: str = "", namespace: str = "") -> dict[str, Readiness]:
        asked.append(f"{context}/{namespace}")
        return {"API server": Readiness(True, "v1.35.4"), "rights": Readiness(False, "none", "ask for them")}

    monkeypatch.setattr(type(registry.hosts()["kubernetes"]), "survey", survey)
    monkeypatch.setattr("weighbridge.runner.preflight.lacking_here", lambda _: None)
    lines = weighbridge("doctor", "--cluster").out.splitlines()
    assert lines[0] == "cluster" and any("rights - none [1]" in line for line in lines)
    assert "to do" in lines and "to install" not in lines
    found = json.loads(weighbridge("doctor", "--context", "prod", "--namespace", "team", "--json").out)
    assert [row["ready"] for row in found["cluster"]] == [True, False] and asked == ["/", "prod/team"]


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_cluster_that_does_not_answer_is_told_by_the_exit_code(
    weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
):
    row = {"API server": Readiness(False, "nobody answers", "start it")}
    monkeypatch.setattr(type(registry.hosts()["kubernetes"]), "survey", lambda *_: row)
    monkeypatch.setattr("weighbridge.runner.preflight.lacking_here", lambda _: None)
    ended = weighbridge("doctor", "--cluster", *words)
    assert ended.code == 4 and "nobody answers" in ended.out


def test_an_environment_is_ready_as_weigh_names_it(monkeypatch: pytest.MonkeyPatch):
    """A user's podman was called ready, and `weigh --in podman` refused it."""
    plugin = registry.environments()["podman"]
    refused = Readiness(False, "only root can", "use podman-rootless")
    ready = Readiness(True, "with rootless: true")
    monkeypatch.setattr(
        preflight, "ready", lambda plugin, options: ready if options is None or options.rootless else refused
    )
    assert _as_weighed(plugin, ready) == refused
    assert {"podman-rootless"} <= plugin.weighed_in().keys() & plugin.variants().keys()


def _row(name: str, remedy: str = "", caveat: str = "") -> dict[str, object]:
    return {"name": name, "ready": not remedy, "remedy": remedy, "caveat": caveat, "unverified": ""}


def test_a_group_has_one_command_for_what_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packages, "this_distribution", lambda: packages.distribution_of("ID=debian"))
    rows = [
        _row("docker", caveat="images only"), _row("qemu", caveat="emulated"),
        _row("podman", "apt-get install podman crun"),
        _row("lxc", "apt-get install lxc crun; install x by hand"), _row("gvisor", "go install runsc"),
    ]  # fmt: skip
    assert _group_lines("engines", rows, 80) == [
        "  engines          ready: docker*, qemu (emulated); missing: podman, lxc, gvisor",
        "                   to add podman: apt-get install podman crun",
    ]
    rows = [_row(f"driver{number}", "run as root" if number else "") for number in range(20)]
    assert _group_lines("network", rows, 80) == [
        "  network          ready: driver0; 19 missing", "                   to add them: run as root",
    ]  # fmt: skip
    assert _group_lines("network", [_row("a, b", "x" * 200)], 80) == ["  network          missing: a b"]
    assert _group_lines("storage", [_row("tmpfs")], 80) == ["  storage          ready: tmpfs"]


def test_each_mark_of_a_limit_has_its_note():
    rows = [
        {**_row("netns", caveat="this machine's programs only"), "group": "network"},
        {**_row("command", caveat="this machine's programs only"), "group": "load generators"},
        {**_row("xen, HVM"), "unverified": "no workload", "group": "virtual machines"},
        {**_row("qemu", caveat="emulated"), "group": "virtual machines"},
        {**_row("far", "run as root", caveat="not shown"), "group": "network"},
    ]
    shown = "ready: netns*, command*, xen HVM*, qemu (emulated); missing: far"
    assert _note_lines(rows, shown, 80, 2) == [
        "* netns, command: this machine's programs only", "* xen HVM: untested on real hardware",
    ]  # fmt: skip
    assert _note_lines(rows, "4 ready; missing: far", 80, 2) == []


def test_doctor_says_the_same_thing_once(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Without root, in 80 columns: what is lacking and what helps stand there once, whatever lacks it."""
    users_machine(monkeypatch, tmp_path, programs={"mmdebstrap", "newuidmap"}, ids="")
    monkeypatch.setattr(output.out(), "width", 80)
    said = weighbridge("doctor", "--all").out
    assert max(map(len, said.splitlines())) <= 80 and len(said.splitlines()) <= 120
    told = " ".join(said.split())
    found = json.loads(weighbridge("doctor", "--json").out)
    every = doctor_rows(found)
    for remedy in {row["remedy"] for row in every if row["remedy"]}:
        assert re.search(rf"\[\d+\] {re.escape(remedy)}(?= |$)", told), remedy
    assert told.count("or use a root filesystem built by root (WEIGHBRIDGE_CACHE)") == 1
    assert all(row["name"] in told and row["unverified"] in told for row in every)


def test_rows_of_doctor_are_those_with_one_state_and_reason():
    def row(name: str, detail: str = "", remedy: str = "", caveat: str = "") -> dict[str, object]:
        return {"name": name, "ready": not remedy, "detail": detail, "remedy": remedy, "caveat": caveat}

    remedies = ["run as root"]
    rows = rows_of(
        [
            row("a", "no x", "get x"), row("b"), row("c, d", "no x", "get x"), row("e"),
            row("f", "it is slow", caveat="emulated"), row("g", "no y", "run as root"),
        ],
        remedies,
    )  # fmt: skip
    assert rows == [
        ("ready", "b, e"),
        ("ready", "f - emulated: it is slow"),
        ("not ready", "a; c, d - no x [2]"),
        ("not ready", "g - no y [1]"),
    ]
    assert remedies == ["run as root", "get x"]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, ready: list, run: Path) -> list[Path]:
    """The folders in which it had a study run: each has then a finished run."""
    folders: list[Path] = []

    def finish(study: Any, directory: Path, *_: Any) -> None:
        assert study.file.study == "noise"
        folders.append(directory)
        shutil.copytree(run, directory)

    monkeypatch.setattr(planned, "userland_problems", lambda _: iter(()))
    monkeypatch.setattr(userlands, "userlands_built", lambda _: False)
    monkeypatch.setattr(running, "run_study", finish)
    monkeypatch.setattr(known_noise, "interrupt_rates", lambda *_: ())
    return folders


def test_a_table_says_how_long_a_precision_takes(weighbridge: Weighbridge, measured: list[Path]):
    said = weighbridge("doctor", "--noise")
    assert said.code == 0
    assert "to ±5%" in said.out and "iperf3" in said.out and "nothing known disturbed" in said.out
    assert max(map(len, said.out.splitlines())) <= 100
    assert len(measured) == 1 and not measured[0].parent.exists()
    assert_sentence(said.err)


def test_devices_that_interrupt_often_are_named(
    weighbridge: Weighbridge, measured: list[Path], monkeypatch: pytest.MonkeyPatch
):
    rate = InterruptRate(127, "nvme0q1", 3, 512.3)
    monkeypatch.setattr(known_noise, "interrupt_rates", lambda *_: (rate,))
    assert "nvme0q1 interrupted CPU 3 512 times a second" in " ".join(weighbridge("doctor", "--noise").out.split())
    found = json.loads(weighbridge("doctor", "--noise", "--json").out)["interrupts"]
    assert found == [{"number": 127, "device": "nvme0q1", "cpu": 3, "per_s": 512.3}]


def test_json_has_fractions_blocks_and_seconds(weighbridge: Weighbridge, measured: list[Path]):
    found = json.loads(weighbridge("doctor", "--noise", "--json").out)
    fits(SchemaDocument.NOISE, found)
    assert found["disturbed"] == []
    row = next(each for each in found["noise"] if each["kind"] == "iperf3")
    assert row["pairs"] == 10 and 0 < row["variation"] < 0.1
    assert [each["half_width"] for each in row["to"]] == [0.05, 0.02, 0.01]
    decides = json.loads(weighbridge("plan", "isolation-tour", "--json").out)["decides"]
    visible = visible_effect(row["variation"] / 10**0.5, 10, 0.05 / decides["comparisons"])
    assert decides["visible"]["iperf3"] == pytest.approx(math.expm1(visible)), "plan knows of it"
    assert decides["noise_measured"] and f"doctor --noise, {decides['noise_measured']})" in decides["sentence"]
    smallest = found["smallest_cost"]
    assert smallest["seconds"] == 600 and {*smallest["by_resource"]} >= {"CPU", "memory", "network", "disk"}
    assert smallest["cost"] is None is smallest["by_resource"]["disk"], "a resource that was not measured is unknown"
    assert decides["smallest_cost"] is None and decides["noise_outdated"] is None
    for each in row["to"]:
        assert each["seconds"] == pytest.approx(2 * row["trial_s"] * each["blocks"])


def test_interrupted_it_leaves_nothing(
    weighbridge: Weighbridge, measured: list[Path], monkeypatch: pytest.MonkeyPatch
):
    def interrupt(study: Any, directory: Path, *_: Any) -> None:
        measured.append(directory)
        RunStore(directory, writable=True).close()
        raise Interrupted(2)

    monkeypatch.setattr(running, "run_study", interrupt)
    said = weighbridge("doctor", "--noise")
    assert said.code == 130 and not measured[0].parent.exists()
    assert_sentence(said.err.splitlines()[-1])


def test_a_group_s_remedy_names_what_it_helps():
    rows = [
        _row("podman-rootless", "as root: usermod x"), _row("lxc", "run as root, please"),
        _row("nspawn", "run as root, please"),
    ]  # fmt: skip
    assert _group_lines("engines", rows, 80)[1:] == ["                   to add lxc, nspawn: run as root, please"]
