"""`weighbridge comment`."""

import os
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.cli.files import STANDARD_OUTPUT, require_one_output
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.runs import run_directory
from weighbridge.errors import RunDirectoryError, WeighbridgeError
from weighbridge.features.pull_request.api import ReadOnlyError
from weighbridge.features.pull_request.document import CommentDocument, Outcome
from weighbridge.features.pull_request.job import TOKENS, CiJob, NotAPullRequest, comments, job
from weighbridge.features.pull_request.options import CommentOptions
from weighbridge.model.secret import SecretName
from weighbridge.report.comment import MOST_CHARACTERS, NAME, URL, marker
from weighbridge.report.comment import comment as comment_text
from weighbridge.secret_values import keep, redacted
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.store.safe_folder import open_named_file
from weighbridge.store.unpacking import MOST_UNPACKED

NO_JOB = "this is not a job of GitHub or GitLab"


def comment(options: CommentOptions) -> None:
    """Write the comment of a run to a file, and post it; if that is not possible, to the job's summary.

    Raises ApiError.
    """
    if not NAME.fullmatch(options.name):
        fail(f"--name: write letters, digits, dots, _ and -, not {options.name!r}", WRONG_COMMAND_LINE)
    if options.page and not URL.fullmatch(options.page):
        fail("--page: write an address that begins with http:// or https://", WRONG_COMMAND_LINE)
    for name in TOKENS:  # the build of a pull request can have made files that hold it
        if value := os.environ.get(name, "").strip():
            keep(SecretName(name), value)
    ours = job()
    if ours is None and options.markdown is None:
        fail(f"{NO_JOB}: write the comment to --markdown FILE", WRONG_COMMAND_LINE)
    require_one_output(options.markdown, as_json=options.as_json)
    text = redacted(_text(options, ours))
    _append(options.markdown, text)
    outcome: Outcome = "not-posted"
    if ours is None:
        if options.markdown != STANDARD_OUTPUT:
            _note(f"the comment is in {options.markdown}; nothing was posted, because {NO_JOB}")
    elif (outcome := _post(ours, text, marker(options.name))) == "not-posted":
        _append(ours.summary, text)
    if options.as_json:
        print_json(CommentDocument(outcome=outcome, text=text))


def _append(file: Path | None, text: str) -> None:
    if file is None:
        return
    if file == STANDARD_OUTPUT:
        print(text, end="", flush=True)
        return
    try:
        with os.fdopen(open_named_file(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a") as target:
            target.write(text)
    except RunDirectoryError as error:  # it is a link, for example, and not a file of a run
        raise WeighbridgeError(f"cannot write {error}") from None
    except OSError as error:
        raise WeighbridgeError(f"cannot write {file}: {error.strerror}") from None


def _added(file: Path) -> str:
    """Return the text to add. Raises WeighbridgeError if it is a link or no file."""
    try:
        with os.fdopen(open_named_file(file), errors="replace") as source:
            return source.read(MOST_CHARACTERS)
    except RunDirectoryError as error:  # it is a link, for example: a build can have made one to a file with a secret
        raise WeighbridgeError(f"cannot read {error}") from None
    except OSError as error:
        raise WeighbridgeError(f"cannot read {file}: {error.strerror}") from None


def _text(options: CommentOptions, ours: CiJob | None) -> str:
    """Return the comment with its hidden marker in the last line."""
    run, stranger = run_directory(options.run), ours is not None and ours.stranger
    if stranger and sum(each.lstat().st_size for each in run.glob(f"{DATABASE}*")) > MOST_UNPACKED:
        raise RunDirectoryError(f"{run} is larger than {MOST_UNPACKED >> 20} MiB, the limit for runs of other jobs")
    if stranger and options.add is not None:
        fail("--add does not work for the run of another job, which could have written it", WRONG_COMMAND_LINE)
    page = options.page if options.page is not None else ours.page if ours is not None else ""
    with RunStore(run) as store:
        text = comment_text(analyse(store), page=page, stranger=stranger)
    added = _added(options.add) if options.add is not None else ""
    if len(text) + len(added) <= MOST_CHARACTERS and added:
        text = f"{text}\n{added.rstrip()}\n"
    return f"{text}\n{marker(options.name)}\n"


def _post(ours: CiJob, text: str, mark: str) -> Outcome:
    """Edit our comment, or create it. If that is not possible, print a note."""
    try:
        every = comments(ours)
        if (number := every.own(mark)) is not None:
            try:
                every.edit(number, text)
            except ReadOnlyError:  # it can have been deleted meanwhile
                number = None
        if number is None:
            every.create(text)
    except NotAPullRequest as why:
        _note(f"note: nothing was posted, because {why}")
    except ReadOnlyError as why:
        _note(
            f"note: nothing was posted, because {ours.about} does not let this job write comments ({why}). This is "
            "usual for pull requests from forks"
        )
    else:
        outcome: Outcome = "created" if number is None else "edited"
        out().print(f"comment {outcome}")
        return outcome
    return "not-posted"


def _note(text: str) -> None:
    err().print(text, markup=False, soft_wrap=True)
