"""Which files a run notes as what it measures."""

import hashlib
from pathlib import Path

from weighbridge.model.command import ProcessDefaults
from weighbridge.model.options import Brings
from weighbridge.model.userland import Userland, Userlands
from weighbridge.runner.measured_programs import measured_programs
from weighbridge.study.brings import brought_by
from weighbridge.study.loader import check
from weighbridge.study.source import parse

STUDY = """\
study: own
question: Which files are measured?
baseline: native
environments:
  native: {{kind: native}}
  bridge: {{kind: docker, workloads: {{own: {{client: [./other, "{{port}}"]}}}}}}
workloads:
  own: {{kind: command, server: [./serve, "{{listen}}"], client: [./own, "{{size}}"],
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


def test_the_program_of_an_engine_is_noted(tmp_path: Path):
    program = tmp_path / "dockerd"
    program.write_bytes(b"another engine")
    text = f"""\
study: engines
question: Which one is measured?
baseline: old
environments:
  old: {{kind: docker}}
  new: {{kind: docker, dockerd: {program}}}
workloads:
  boot: {{kind: boot}}
repetitions: {{blocks: 1}}
"""
    study = check(parse(text, "own.yaml"))
    assert [(each.what, each.value) for each in brought_by(study)] == [(Brings.PROGRAM, str(program))]
    userlands = Userlands(Userland("0" * 64, tmp_path, None, {}, ProcessDefaults()))
    assert measured_programs(study, userlands) == {str(program): hashlib.sha256(b"another engine").hexdigest()}
    program.unlink()
    assert measured_programs(study, userlands) == {}
