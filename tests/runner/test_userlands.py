"""Which files a run notes as what it measures."""

import hashlib
from pathlib import Path

import pytest

from sentences import assert_sentence
from weighbridge.model.command import ProcessDefaults
from weighbridge.model.options import External
from weighbridge.model.userland import Userland, Userlands
from weighbridge.runner.userlands import (
    absent_programs,
    ensure_userlands,
    measured_packages,
    measured_programs,
    userland_facts,
)
from weighbridge.study.external import external_resources
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.userland.sources import host

STUDY = """\
study: own
question: Which files are measured?
baseline: native
environments:
  native: {{kind: native}}
  bridge: {{kind: docker, workloads: {{own: {{client: [./other, "{{port}}"]}}}}}}
workloads:
  own: {{kind: command, server: [./serve, "{{listen}}", "{{port}}"], client: [./own, "{{size}}"],
        parameters: {{size: [small, large]}}, files: {{/tmp/tool: {tool}, /tmp/notes: {notes}}}}}
  boot: {{kind: boot}}
repetitions: {{blocks: 1}}
"""


def test_each_role_level_and_environment_has_its_words_and_files_that_are_programs(tmp_path: Path):
    for name in ("work/serve", "work/own", "work/other", "work/small", "work/unused"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "tool").write_bytes(b"tool")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "notes").write_bytes(b"notes")
    userlands = Userlands(Userland("0" * 64, tmp_path, None, {}, ProcessDefaults(cwd="/work")))
    text = STUDY.format(tool=tmp_path / "tool", notes=tmp_path / "notes")
    text = text.replace('client: [./other, "{port}"]', 'client: [./other, "{size}"]')
    found = measured_programs(check(parse(text, "own.yaml")), userlands)
    assert found == {
        "./serve": hashlib.sha256(b"work/serve").hexdigest(),
        "./own": hashlib.sha256(b"work/own").hexdigest(),
        "./other": hashlib.sha256(b"work/other").hexdigest(),
        "small": hashlib.sha256(b"work/small").hexdigest(),
        "/tmp/tool": hashlib.sha256(b"tool").hexdigest(),
        "/tmp/notes": hashlib.sha256(b"notes").hexdigest(),
    }
    (tmp_path / "own").write_text("elsewhere")
    elsewhere = Userlands(userlands.usual, Userland("1" * 64, tmp_path, None, {}, ProcessDefaults(cwd="/")))
    found = measured_programs(check(parse(text, "own.yaml")), elsewhere)
    assert found["./serve"] == hashlib.sha256(b"work/serve").hexdigest()
    assert found["./own (client)"] == hashlib.sha256(b"elsewhere").hexdigest()


def test_of_a_userland_s_packages_those_of_the_measured_programs_are_named(tmp_path: Path):
    files = {
        "usr/bin/own": "#!/bin/sh\n", "usr/bin/dash": "\x7fELF",
        "var/lib/dpkg/info/own-tools.list": "/.\n/usr/bin/own\n", "var/lib/dpkg/info/dash:amd64.list": "/bin/dash\n",
        "var/lib/dpkg/info/other.list": "/usr/bin/owner\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "usr/bin/sh").symlink_to("dash")
    versions = {"own-tools": "1.2", "dash": "0.5", "other": "3"}
    study = check(parse(OWN.replace("[/app]", "[own, /usr/bin/owner]"), "own.yaml"))
    userland = Userland("0" * 64, tmp_path, tmp_path / "root.tar", versions)
    found = measured_packages(study, Userlands(userland))
    assert found == {"userland packages measured": {"own-tools": "1.2", "dash": "0.5"}}
    assert measured_packages(study, Userlands(Userland("0" * 64, tmp_path / "none", None, {}))) == {
        "userland packages measured": {}
    }


def test_of_commands_in_an_open_site_the_command_is_named_and_not_the_launcher(tmp_path: Path):
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    for program in ("echo", "repeat"):
        (root / "usr/bin" / program).write_bytes(program.encode())
        (root / "usr/bin" / program).chmod(0o755)
    text = "study: own\nquestion: What?\nbaseline: a\nenvironments: {a: {kind: native}, b: {kind: netns}}\n"
    study = check(parse(f"{text}workloads: {{do: {{kind: exec}}}}\n", "own.yaml"))
    found = measured_programs(study, Userlands(Userland("0" * 64, root, tmp_path / "tar", {})))
    assert found == {"echo": hashlib.sha256(b"echo").hexdigest()}


def test_an_environment_with_a_userland_of_its_own_has_programs_of_its_own(tmp_path: Path):
    for name in ("new/app", "old/app"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    usual, own = (Userland("0" * 64, tmp_path / name, None, {}) for name in ("new", "old"))
    study = check(parse(OWN, "own.yaml"))
    found = measured_programs(study, Userlands(usual, by_environment={"before": own, "before-again": own}))
    assert found == {
        "/app": hashlib.sha256(b"new/app").hexdigest(),
        "/app (before)": hashlib.sha256(b"old/app").hexdigest(),
    }
    assert {*userland_facts(study, Userlands(usual, by_environment={"before": own, "before-again": own}))} == {
        "userland", "userland packages", "userland of before", "userland of before packages",
    }  # fmt: skip


OWN = """\
study: own
question: Which files are measured?
baseline: before
userland: {kind: saved-image, path: new.tar}
environments:
  before: {kind: docker, userland: {kind: saved-image, path: old.tar}}
  after: {kind: docker}
workloads:
  own: {kind: command, run: [/app]}
repetitions: {blocks: 1}
"""


ABSENT = """\
study: own
question: Is the program there?
{userland}baseline: native
environments:
  native: {{kind: native}}
  host: {{kind: docker, network: host}}
workloads:
  own: {{kind: command, {words}}}
repetitions: {{blocks: 1}}
"""
HOST = "userland: {{kind: host}}\n"
HOST_FOLDER = "userland: {{kind: host, folder: {folder}}}\n"


@pytest.mark.parametrize(
    ("userland", "words", "absent"),
    [
        ("", "run: [./prog]", True), ("", "run: [/home/me/prog]", True), ("", "run: [usr/bin/true]", False),
        ("", "run: [/tmp/prog]", False), ("", "run: ./prog, shell: true", False), ("", "run: [prog]", False),
        (HOST, "run: [./prog]", True), (HOST, "run: [/bin/sh]", False), (HOST, "run: [/no/such/program]", True),
        (HOST, "run: ['/opt/${{{{secret:A}}}}/prog']", False), (HOST_FOLDER, "run: [./prog]", False),
        (HOST_FOLDER, "run: [./other]", True),
        (HOST_FOLDER, "run: [./made], setup: make", False),
        ("", "server: './serve {port}', client: [nc]", True),
    ],
)  # fmt: skip
def test_a_program_that_the_userland_cannot_have_is_told_beforehand(tmp_path, userland, words, absent):
    (tmp_path / "prog").touch()
    text = ABSENT.format(userland=userland.format(folder=tmp_path), words=words)
    why = [*absent_programs(check(parse(text, "own.yaml")))]
    assert [workload for workload, _ in why] == ["own"] * absent
    if absent:
        assert_sentence(why[0][1])


ENGINES = """\
study: engines
question: Which one is measured?
baseline: old
environments:
  old: {kind: docker}
  new: {kind: docker}
workloads:
  boot: {kind: boot}
repetitions: {blocks: 1}
"""


def test_the_program_of_an_engine_is_noted(tmp_path: Path):
    program = tmp_path / "dockerd"
    program.write_bytes(b"another engine")
    text = ENGINES.replace("new: {kind: docker}", f"new: {{kind: docker, dockerd: {program}}}")
    study = check(parse(text, "own.yaml"))
    assert [(each.kind, each.value) for each in external_resources(study)] == [(External.PROGRAM, str(program))]
    userlands = Userlands(Userland("0" * 64, tmp_path, None, {}, ProcessDefaults()))
    assert measured_programs(study, userlands) == {str(program): hashlib.sha256(b"another engine").hexdigest()}
    program.unlink()
    assert measured_programs(study, userlands) == {}


def test_without_packages_this_machines_files_are_known_by_what_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Without dpkg every machine had the digest of no packages, whatever was installed on it."""
    program = tmp_path / "own"
    program.write_text("one build")
    monkeypatch.setattr(host, "packages_in", lambda _: {})
    monkeypatch.setattr(host, "_ROOT", tmp_path)
    text = """\
study: own
question: Which files are measured?
userland: host
baseline: native
environments:
  native: {kind: native}
  netns: {kind: netns, userland: {kind: host}}
workloads:
  own: {kind: command, run: [/own]}
repetitions: {blocks: 1}
"""
    study = check(parse(text, "own.yaml"))
    first = ensure_userlands(study, tmp_path, print)
    assert len(first.usual.digest) == 64 and first.by_environment["netns"].digest == first.usual.digest
    assert ensure_userlands(study, tmp_path, print).usual.digest == first.usual.digest
    program.write_text("another")
    assert ensure_userlands(study, tmp_path, print).usual.digest != first.usual.digest
