"""Completion as shells do it, by the scripts that the program prints."""

import os
import shutil
from pathlib import Path

import pytest

from weighbridge.cli.complete import complete_environments, complete_study

from .released import must


def test_studies_and_environments_are_completed():
    assert complete_study("docker-n") == ["docker-networks"]
    assert complete_environments("docker,podman-r") == ["docker,podman-rootless"]
    assert "docker,docker" not in complete_environments("docker,")


ASK = {
    "bash": "COMP_WORDS=(weighbridge {0}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
    '_weighbridge_completion weighbridge; printf "%s\\n" "${{COMPREPLY[@]}}"',
    "zsh": "words=(weighbridge {0}) CURRENT=$#words; _weighbridge_completion",
    "fish": "complete -C 'weighbridge {0}'",
}
BEFORE = {"zsh": "compdef() {}; _arguments() { print -r -- $@ }; _describe() { print -r -- ${(P)2} };"}
"""zsh's completion works in a terminal alone: what is handed to it is shown in its place."""


@pytest.mark.real
@pytest.mark.side_by_side
@pytest.mark.parametrize("shell", ASK)
def test_a_shell_completes_commands_studies_and_environments(shell: str, program: Path, tmp_path: Path):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    env = {"HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
    file = tmp_path / "completion"
    file.write_text(must("weighbridge", env={**env, "_WEIGHBRIDGE_COMPLETE": f"source_{shell}"}))
    asked = ("gat", "plan docker-net", "weigh --in native,net")
    lines = "\n".join((BEFORE.get(shell, ""), f"source {file}", *(ASK[shell].format(words) for words in asked)))
    said = must(shell, "-c", lines, env=env, cwd=tmp_path)
    assert "gate" in said and "docker-networks" in said and "native,netns" in said
    assert "first-look" not in said and "doctor" not in said
