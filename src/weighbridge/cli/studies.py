"""`weighbridge studies`."""

import textwrap
from collections.abc import Iterator

from weighbridge.cli.commands.studies import StudiesOptions
from weighbridge.cli.documents import ListedStudy, StudiesDocument
from weighbridge.cli.output import out, print_json
from weighbridge.study import loader
from weighbridge.study.source import bundled, bundled_study

INDENT = "    "


def studies(options: StudiesOptions) -> None:
    """Print the bundled studies."""
    listed = describe()
    if options.as_json:
        print_json(StudiesDocument(studies=tuple(listed)))
        return
    for study in listed:
        for line in lines(study, out().width):
            out().print(line, markup=False, soft_wrap=True)


def describe() -> list[ListedStudy]:
    """Return the bundled studies."""
    files = {name: loader.load(bundled_study(name)).file for name in bundled()}
    return [
        ListedStudy(
            study=name,
            question=file.question,
            profiles=(*file.profiles,),
            environments=(*file.environments,),
            workloads=(*file.workloads,),
        )
        for name, file in files.items()
    ]


def lines(study: ListedStudy, width: int) -> Iterator[str]:
    """Yield the name on its own line, so that it is easy to copy, and then the rest. Names are never broken."""
    yield study.study
    yield from _wrapped(study.question, width)
    for what in ("environments", "workloads", "profiles"):
        if names := getattr(study, what):
            yield from _wrapped(f"{what}: {', '.join(names)}", width)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, len(INDENT) + 1),
        initial_indent=INDENT,
        subsequent_indent=INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
