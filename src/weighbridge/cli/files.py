"""The output of commands that write files for the user."""

from collections.abc import Iterable
from pathlib import Path

from weighbridge.cli.documents import FilesDocument
from weighbridge.cli.messages import ANSWER, WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import out, print_json
from weighbridge.model.document import SuggestedStep

STANDARD_OUTPUT = Path("-")
"""The file name that stands for standard output."""


def require_one_output(markdown: Path | None, *, as_json: bool) -> None:
    """Exit with a message if ``--json`` and ``--markdown -`` would share standard output."""
    if markdown == STANDARD_OUTPUT and as_json:
        fail("--json and --markdown - both use standard output: choose one", WRONG_COMMAND_LINE)


def report_study(file: Path) -> None:
    """Print that a study file was written, and the next command."""
    command = ("weighbridge", "plan", str(file))
    step = SuggestedStep(code="plan", reason="The plan shows what will run.", command=command)
    report_files([file], f"{file} written. Next: {' '.join(command)}", next_steps=(step,))


def report_files(files: Iterable[Path], text: str, next_steps: tuple[SuggestedStep, ...] = ()) -> None:
    """Print the text, or with ``--json`` the document about files or a folder that were written."""
    if ANSWER.json:
        print_json(FilesDocument(files=tuple(map(str, files)), next_steps=next_steps))
    else:
        out().print(text, markup=False, soft_wrap=True)
