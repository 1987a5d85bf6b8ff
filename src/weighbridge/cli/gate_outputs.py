"""What a gate writes for CI. A file that cannot be written loses nothing else."""

import contextlib
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from weighbridge.cli.output import WRONG_COMMAND_LINE, fail, out, print_json
from weighbridge.errors import WeighbridgeError

if TYPE_CHECKING:
    from weighbridge.cli.gate_questions import Judged
    from weighbridge.store.run import RunStore


class Annotations(StrEnum):
    """Whose remarks beside the code are made."""

    GITHUB = "github"
    GITLAB = "gitlab"


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files, and what is printed."""

    junit: Path | None = None
    markdown: Path | None = None
    annotations: Annotations | None = None
    bmf: Path | None = None
    as_json: bool = False

    def require_possible(self) -> None:
        """End the command, before anything is measured, where two outputs have one place or a folder is missing."""
        if self.as_json and self.annotations is not None:
            fail("--json and --annotations are both for standard output: choose one", WRONG_COMMAND_LINE)
        paths = [path for path in (self.junit, self.markdown, self.bmf) if path is not None]
        if len({path.absolute() for path in paths}) < len(paths):
            fail("--junit, --markdown and --bmf need a file each", WRONG_COMMAND_LINE)
        for path in paths:
            why = (
                "is a folder: name a file in it" if path.is_dir()
                else "cannot be written: its folder is missing" if not path.parent.is_dir()
                else "cannot be written" if not os.access(path if path.exists() else path.parent, os.W_OK)
                else ""
            )  # fmt: skip
            if why:
                fail(f"{path} {why}", WeighbridgeError.exit_code)

    def write(self, judged: "Judged", store: "RunStore") -> list[str]:
        """Print and write everything; a sentence for each file that could not be written."""
        from weighbridge.report.export.bmf import bmf
        from weighbridge.report.export.junit import junit_xml
        from weighbridge.report.export.markdown import gate_markdown

        self._print(judged, store)
        study, rows = judged.analysis.study, judged.rows
        made: list[tuple[Path | None, str, Callable[[], bytes]]] = [
            (self.junit, "wb", lambda: junit_xml(study, rows)),
            (self.markdown, "ab", lambda: gate_markdown(study, judged.answer, rows).encode()),
            (self.bmf, "wb", lambda: json.dumps(bmf(judged.analysis), indent=2, allow_nan=False).encode() + b"\n"),
        ]
        refused = []
        for path, mode, make in made:
            if path is None:
                continue
            try:
                with path.open(mode) as file:
                    file.write(make())
            except OSError as error:
                refused.append(f"{path} cannot be written: {error.strerror}")
        return refused

    def _print(self, judged: "Judged", store: "RunStore") -> None:
        from weighbridge.report.export.annotations import github_commands, gitlab_code_quality
        from weighbridge.report.export.gate_json import gate_json

        if self.as_json:
            print_json(gate_json(judged.gate, judged.analysis, judged.against))
        elif self.annotations is Annotations.GITLAB:
            print(gitlab_code_quality(judged.rows, _in_the_project(store.directory)), end="", flush=True)
        else:
            stopped = secrets.token_hex(16)  # no name in a run gives orders to GitHub's runner, which reads this
            if self.annotations is Annotations.GITHUB:
                print(f"::stop-commands::{stopped}", flush=True)
            for row in judged.rows:
                out().print(row.sentence, markup=False, soft_wrap=True)
            if judged.gate.answer == "passed":
                out().print(judged.answer, markup=False, soft_wrap=True)
            if self.annotations is Annotations.GITHUB:
                print(f"::{stopped}::", flush=True)
                print(github_commands(judged.rows), end="", flush=True)


def _in_the_project(run: Path) -> str:
    """The run's place below the folder of the job, as GitLab wants paths; its name where it is elsewhere."""
    project = Path(os.environ.get("CI_PROJECT_DIR") or Path.cwd())
    with contextlib.suppress(ValueError, OSError):
        return run.resolve().relative_to(project.resolve()).as_posix()
    return run.resolve().name
