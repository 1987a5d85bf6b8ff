"""The kit of a run, used: one command measures the study again and compares both runs."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from weighbridge.store.run import RunStore

from .weighing import PROGRAM, trials, weighbridge

STUDY = """\
study: short
question: Does somebody else get the same?
userland: {{kind: host, folder: {folder}}}
baseline: native
environments: {{native: {{kind: native}}, netns: {{kind: netns}}}}
workloads: {{own: {{kind: command, run: [sh, -c, 'n=0; while [ $n -lt 2000 ]; do n=$((n+1)); done']}}}}
repetitions: {{rounds: 6}}
cpu_idle: halt
"""


def repeat(kit: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Call the script as an evaluator does, who has the program in PATH and no terminal here."""
    programs = kit.parent / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "weighbridge"
    program.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    variables = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    argv = (str(kit / "repeat.sh"), *options)
    return subprocess.run(
        argv, cwd=kit.parent, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip


def test_one_command_repeats_a_run_and_compares_both(tmp_path: Path):
    study, run, kit = tmp_path / "study.yaml", tmp_path / "run", tmp_path / "evaluator/kit"
    study.write_text(STUDY.format(folder=tmp_path))
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    done = weighbridge("kit", "--run", run, "--out", kit)
    assert done.code == 0 and {path.name for path in kit.iterdir()} == {
        "README.md", "study.yaml", "original.sqlite.gz", "repeat.sh",
    }  # fmt: skip
    assert stat.S_IMODE((kit / "repeat.sh").stat().st_mode) & 0o111

    refused = repeat(kit)
    assert refused.returncode == 2 and "add --yes" in refused.stderr, refused
    assert not (kit / "repeated").exists() and not (kit / "comparison.html").exists()

    repeated = repeat(kit, "--yes")
    assert repeated.returncode == 0, repeated
    assert (kit / "original/run.sqlite").read_bytes() == (run / "run.sqlite").read_bytes()
    with RunStore(kit / "repeated") as store:
        assert store.info()["study"] == "short" and len(store.trials()) == 18
    assert "</html>" in (kit / "comparison.html").read_text()
    assert any(word in repeated.stdout for word in ("equivalent", "undecided", "significant")), repeated

    before = trials(kit / "repeated")
    again = repeat(kit, "--yes")
    assert again.returncode == 0 and trials(kit / "repeated") == before, again


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_shells_take_the_script(shell: str):
    script = Path(__file__).parents[2] / "src/weighbridge/features/kit/templates/repeat.sh"
    subprocess.run([shell, "-n", script], check=True, capture_output=True)
