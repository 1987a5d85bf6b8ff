"""`weighbridge registry`: add, index and list."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.cli.files import report_files
from weighbridge.cli.messages import fail
from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.runs import run_directory
from weighbridge.errors import RunDirectoryError, WeighbridgeError
from weighbridge.features.archive.document import RegistryDocument, RegistryRun, RegistrySkipped
from weighbridge.features.archive.entry import entry_of
from weighbridge.features.archive.index_page import ListedRun
from weighbridge.features.archive.kept_file import kept_file, opened, raw_archive
from weighbridge.features.archive.options import RegistryAddOptions, RegistryIndexOptions, RegistryListOptions
from weighbridge.features.archive.registry_folder import INDEX as INDEX_PAGE
from weighbridge.features.archive.registry_folder import Index, add_run, read_index, rebuild
from weighbridge.features.archive.text import git_commands, index_line, outcome_lines, published_lines
from weighbridge.linux.git import WITHOUT_PLACES
from weighbridge.linux.process import run as run_command
from weighbridge.model.command import Command
from weighbridge.model.secret import always_hidden, variables_in
from weighbridge.store.run import RunStore


def add(options: RegistryAddOptions) -> None:
    """Print what a copy of a run publishes, write the copy into a registry, and rebuild the index."""
    run, repository = run_directory(options.run), options.repository
    with RunStore(run) as store:
        _require_no_values(store)
        kept = kept_file(store, everything=options.raw, host_names=options.host_names)
    raw = raw_archive(run) if options.raw else b""
    with opened(kept.data, str(run)) as copy:
        analysis = analyse(copy)
        entry = entry_of(copy, analysis)
        for line in published_lines(
            copy, analysis, entry, kept, raw, host_names=options.host_names, every=options.check
        ):  # fmt: skip
            _print(line)
    if options.check:
        report_files((), "nothing was written")
        return
    files, changed = add_run(repository, entry, kept.data, raw)
    index = rebuild(repository)
    _warn(index)
    lines = list(outcome_lines(repository, files, index, changed=changed))
    if options.commit:
        lines += _commit(repository, git_commands(repository, entry, files))
    elif changed:
        place = repository.resolve()
        in_git = any((folder / ".git").exists() for folder in (place, *place.parents))
        init = [] if in_git else [("git", "init", "-q", str(repository))]
        commands = *init, *git_commands(repository, entry, files)
        lines += ["To commit it:", *(f"  {shlex.join(command)}" for command in commands)]
    report_files([repository / each for each in files], "\n".join(lines))


def _require_no_values(store: RunStore) -> None:
    """Raise RunDirectoryError if an early version of Weighbridge stored the values of variables in a run."""
    if store.secrets() is not None:
        return
    study = store.study()
    if study is None or any(always_hidden(place) for place, *_ in variables_in(study.file.model_dump())):
        raise RunDirectoryError(
            f"{store.directory} was measured by an early version of Weighbridge, which stored the values of "
            "variables: measure it again"
        )


def index(options: RegistryIndexOptions) -> None:
    """Rebuild the index and all pages of a registry."""
    _require_folder(options.repository)
    rebuilt = rebuild(options.repository)
    _warn(rebuilt)
    report_files([options.repository / INDEX_PAGE], index_line(options.repository, rebuilt))
    if options.strict and rebuilt.skipped:
        fail(f"{options.repository} has files that were skipped", RunDirectoryError.exit_code)


def list_runs(options: RegistryListOptions) -> None:
    """Print the runs of a registry: the kept file, then its study, date and machine."""
    _require_folder(options.repository)
    index = read_index(options.repository)
    _warn(index)
    if options.as_json:
        print_json(
            RegistryDocument(
                runs=tuple(map(_listed, index.runs)),
                skipped=tuple(RegistrySkipped(file=each.name, reason=each.reason) for each in index.skipped),
            )
        )
    else:
        for each in index.runs:
            _print(str(options.repository / each.file))
            _print(f"    {each.entry.study}, {each.entry.created}, {each.entry.machine}")
        if not index.runs:
            _print("no run in it")


def _listed(each: ListedRun) -> RegistryRun:
    entry = each.entry
    return RegistryRun(
        run=entry.run_id, file=each.file, machine=entry.machine, study=entry.study, question=entry.question,
        created=entry.created, answer=entry.answer,
    )  # fmt: skip


def _require_folder(repository: Path) -> None:
    if not repository.is_dir():
        what = "is not a folder" if repository.exists() else "does not exist"
        raise RunDirectoryError(f"{repository} {what}: name the folder of a registry")


def _commit(repository: Path, commands: Sequence[tuple[str, ...]]) -> list[str]:
    """Commit the files of a run, unless git has them already; return what to say. Raises WeighbridgeError."""
    stage, commit = commands
    unchanged = ("git", "-C", str(repository), "diff", "--cached", "--quiet", "--", *commit[commit.index("--") + 1 :])
    for argv in (stage, unchanged, commit):
        ended = run_command(Command((*WITHOUT_PLACES, *argv)))
        if argv is unchanged:
            if ended.returncode == 0:
                return []
        elif ended.returncode != 0:
            raise WeighbridgeError(f"git could not commit the run: {ended.last_words}")
    return ["committed; to publish it, push"]


def _warn(index: Index) -> None:
    for each in index.skipped:
        err().print(f"skipped {each.name}: {each.reason}", markup=False)


def _print(line: str) -> None:
    out().print(line, markup=False, soft_wrap=True)
