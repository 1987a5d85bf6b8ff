"""The options and examples of comment."""

from dataclasses import dataclass
from pathlib import Path

from weighbridge.cli.declared import Declared, argument, option
from weighbridge.cli.help import OUTPUT, WHAT
from weighbridge.cli.options import json_flag


@dataclass(frozen=True, slots=True)
class CommentOptions:
    """Post a run's verdict as a comment on the pull request (GitHub) or merge request (GitLab) of this CI job.

    Later jobs edit the same comment. The token is read from GITHUB_TOKEN or GITLAB_TOKEN. If it cannot write, as in
    pull requests from forks, the text is only in the job's summary and in the file of --markdown.
    """

    run: Path = argument("RUN", "A run directory, or a kept file.")
    name: str = option(
        "--name NAME", "The name of the comment, if a pull request has several.", WHAT, default="weighbridge"
    )
    page: str | None = option(
        "--page URL", "The address of the report, for a link. Default: the page of the CI job.", WHAT
    )
    add: Path | None = option(
        "--add FILE", "Also post this Markdown, for example of weighbridge gate --markdown FILE.", WHAT
    )
    markdown: Path | None = option("--markdown FILE", "Also append the comment to this file; - prints it.", OUTPUT)
    as_json: bool = json_flag()


COMMENT = Declared(
    "weighbridge.features.pull_request.comment_command:comment",
    CommentOptions,
    (
        "weighbridge comment RUN",
        "weighbridge comment RUN --name sort --page https://ci.example.org/report.html",
        "weighbridge comment RUN --add gate.md --markdown comment.md",
    ),
    documents=("comment",),
)
