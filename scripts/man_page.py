#!/usr/bin/env python3
"""Write docs/weighbridge.1, the manual page, from the command line's own help. See man-pages(7) for its form."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from weighbridge.cli.app import app
from weighbridge.cli.help import examples_of, panels_of

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))
import generated  # noqa: E402

PAGE = DOCS / "weighbridge.1"
_WORDS = re.compile(r"\s+")


def main() -> int:
    """Write the page."""
    PAGE.write_text(page())
    return 0


def page() -> str:
    """Return the manual page, in the language of roff."""
    group = typer.main.get_command(app)
    context = type(group).context_class(group, info_name="weighbridge")
    help_text = (group.help or "").split("\n\n")
    lines = ['.TH WEIGHBRIDGE 1 "" "" "User Commands"', ".SH NAME", "weighbridge \\- what does isolation cost?"]
    lines += [".SH SYNOPSIS", ".B weighbridge", r"[\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGUMENTS\fR]"]
    lines += [".SH DESCRIPTION", *_paragraphs(help_text), *_parameters(group)]
    lines += [".SH COMMANDS"]
    lines += _commands(group, context)
    lines += [".SH EXIT STATUS"]
    meanings: dict[int, list[str]] = {}
    for code, _, meaning in generated.exit_code_meanings():
        meanings.setdefault(code, []).append(meaning.replace("`", ""))
    for code, each in meanings.items():
        lines += [".TP", f".B {code}", _plain(" ".join(each))]
    lines += [".SH FILES", ".TP", r".I ~/.local/share/weighbridge/runs", "Runs of weigh.", ".TP"]
    lines += [r".I ~/.cache/weighbridge", "Caches, rebuilt when missing; WEIGHBRIDGE_CACHE names another folder."]
    return "\n".join(lines) + "\n"


def _commands(group: Any, context: Any) -> Iterator[str]:
    """Give each command, those of a group after it."""
    for command in group.commands.values():
        if command.hidden:
            continue
        inner = type(context)(command, info_name=command.name, parent=context)
        path = inner.command_path
        usage = " ".join(command.collect_usage_pieces(inner))
        yield f".SS {_plain(path)} {_plain(usage)}"
        yield from (*_paragraphs((command.help or "").split("\n\n")), *_parameters(command))
        yield from _examples([each.line for each in examples_of(command)])
        if hasattr(command, "commands"):
            yield from _commands(command, inner)


def _parameters(command: Any) -> Iterator[str]:
    """Give each argument and option, under the headings of ``--help`` if there are several."""
    panels = panels_of(command)
    for name, entries in panels.items():
        yield from (".PP", rf"\fB{_plain(name)}\fR") if len(panels) > 1 else ()
        for entry in entries:
            yield from (".TP", f".B {_plain(entry.usage)}", _plain(entry.description) or r"\&")


def _paragraphs(texts: list[str]) -> Iterator[str]:
    for text in texts:
        yield from (".PP", _plain(text))


def _examples(lines: list[str]) -> Iterator[str]:
    if lines:
        yield from (".PP", "Example:" if len(lines) == 1 else "Examples:", ".PP", ".nf")
        yield from (f"    {_plain(line)}" for line in lines)
        yield ".fi"


def _plain(text: str) -> str:
    """Return a text as one line that roff shows as it stands."""
    line = _WORDS.sub(" ", text).strip().replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    sys.exit(main())
