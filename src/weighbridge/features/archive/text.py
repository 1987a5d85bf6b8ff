"""The sentences of `weighbridge registry`."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from weighbridge.analysis.results import Analysis
from weighbridge.features.archive.entry import RegistryEntry, machine_facts
from weighbridge.features.archive.kept_file import KERNEL_COMMAND_LINE, KeptFile
from weighbridge.features.archive.registry_folder import INDEX, Index
from weighbridge.model.text import one_line
from weighbridge.report.text.formatting import plural, quantity
from weighbridge.store.run import RunStore
from weighbridge.store.unpacking import ENDING

_MOST, _MOST_COMMANDS, _LONGEST = 20, 6, 200
"""The numbers of replaced texts and of commands that are listed, and the most characters of each."""


def published_lines(
    store: RunStore, analysis: Analysis, entry: RegistryEntry, kept: KeptFile, raw: bytes, *,
    host_names: bool, every: bool,
) -> Iterator[str]:  # fmt: skip
    """Yield the content of a kept file, and the parts that it leaves out; ``every``: without any limit."""
    yield f"Run {entry.run_id} of {entry.study}, measured on {entry.created}. Its copy contains:"
    facts = machine_facts(store)
    yield f"  machine: {entry.machine}, with {plural(len(facts), 'fact')}"
    kernel, started = (one_line(facts.get(key, ""), 1000) for key in ("kernel", KERNEL_COMMAND_LINE))
    yield f"  kernel: {kernel}, started with {started}"
    yield "  the study as written, with its commands, options and environment variables"
    programs = dict.fromkeys(shlex.join(each.argv) for each in store.processes())
    most, replaced, length = (None, None, None) if every else (_MOST_COMMANDS, _MOST, _LONGEST)
    for line in [*programs][:most]:
        yield f"  command: {one_line(line, length)}"
    if most is not None and (more := len(programs) - most) > 0:
        yield f"  and {plural(more, 'more command')}: see --check"
    yield f"  {plural(len(analysis.trials), 'trial')} with values, CPU times, messages and flags"
    size = f"{quantity(float(len(raw)), 'B')}, unchanged" if raw else "none"
    yield f"  raw outputs: {size}"
    names = one_line(", ".join(store.secrets() or ()), 1000)
    yield f"  secrets: {f'only the names {names}' if names else 'none'}"
    yield f"  host names and public addresses: {'kept' if host_names else 'replaced'}"
    for old, new in [*kept.replaced.items()][:replaced]:
        yield f"  replaced: {one_line(old, length)} by {new}"
    yield "Weighbridge does not know which words of commands and messages are confidential: read them."


def outcome_lines(repository: Path, files: Sequence[str], index: Index, *, changed: bool) -> Iterator[str]:
    """Yield what was added, and the index."""
    for file in files:
        yield f"{'added' if changed else 'already there'}: {repository / file}"
    yield index_line(repository, index)


def index_line(repository: Path, index: Index) -> str:
    """Return the path of the index, and how much it lists."""
    skipped = f", {plural(len(index.skipped), 'file')} skipped" if index.skipped else ""
    return f"index: {repository / INDEX} ({plural(len(index.runs), 'run')}{skipped})"


def git_commands(repository: Path, entry: RegistryEntry, files: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the commands that commit the files of a run, its page and the index, and nothing else in the folder."""
    page = f"{files[0].removesuffix(ENDING)}.html"
    git, paths = ("git", "-C", str(repository)), ("--", *files, page, INDEX)
    message = f"Add run {entry.run_id} of {entry.study}"
    return [(*git, "add", *paths), (*git, "commit", "-q", "-m", message, *paths)]
