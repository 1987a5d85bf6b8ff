"""The pull request that a CI job is about, from the variables and the event that the service gives to the job."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from weighbridge.features.pull_request.api import Api, ApiError, token_of
from weighbridge.features.pull_request.services import Comments, GitHubComments, GitLabComments, pull_of_branch
from weighbridge.model.text import one_line
from weighbridge.report.comment import URL

_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,100}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
_LARGEST_EVENT = 8 * 2**20
_GITHUB, _GITLAB = "GITHUB_API_URL", "CI_API_V4_URL"
"""The variables with the address of the API."""
TOKENS = ("GITHUB_TOKEN", "GITLAB_TOKEN")
"""The variables with the tokens."""
_NEW_HEAD = "its branch has a newer commit, or it is closed"


class _Login(BaseModel):
    login: str


class _Repository(BaseModel):
    full_name: str = ""
    owner: _Login | None = None


class _Head(BaseModel):
    repo: _Repository | None = None


class _PullRequest(BaseModel):
    number: int = Field(ge=1)


class _WorkflowRun(BaseModel):
    id: int = Field(ge=1)
    event: str
    head_sha: str
    head_branch: str | None = None
    head_repository: _Repository | None = None


class _Event(BaseModel):
    pull_request: _PullRequest | None = None
    workflow_run: _WorkflowRun | None = None


@dataclass(frozen=True, slots=True)
class CiJob:
    """A CI job. ``about`` are words about the service. ``page`` is the address of the page with the report; empty if
    unknown.

    ``stranger`` is whether the run comes from another job, which the author of the pull request controls.
    """

    about: str
    page: str = ""
    summary: Path | None = None
    """The file of the job's summary."""
    stranger: bool = False


class NotAPullRequest(Exception):
    """The job is not about a pull request; the message says what it is about."""


def job() -> CiJob | None:
    """Return the CI job that this process belongs to; None outside of GitHub and GitLab. Raises ApiError."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        names = ("SERVER_URL", "REPOSITORY", "RUN_ID")
        server, repository, run = (os.environ.get(f"GITHUB_{name}", "") for name in names)
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        measuring = _event().workflow_run
        page = _address(f"{server}/{repository}/actions/runs/{measuring.id if measuring is not None else run}")
        return CiJob("GitHub", page, Path(summary) if summary else None, stranger=measuring is not None)
    if os.environ.get("GITLAB_CI") == "true":
        return CiJob("GitLab", _address(f"{os.environ.get('CI_JOB_URL', '')}/artifacts/browse"))
    return None


def comments(of: CiJob) -> Comments:
    """Return the comments of the job's pull request.

    Raises NotAPullRequest, ReadOnlyError without a token, and ApiError.
    """
    return _on_github() if of.about == "GitHub" else _on_gitlab()


def _address(url: str) -> str:
    return url if URL.fullmatch(url) else ""


def _token(variable: str) -> str:
    return token_of(variable, os.environ.get(variable, "").strip())


def _on_github() -> Comments:
    event = _event()
    if event.pull_request is None and event.workflow_run is None:
        raise NotAPullRequest("this job is not about a pull request")
    repository = os.environ.get("GITHUB_REPOSITORY", "")
    if not _REPOSITORY.fullmatch(repository):
        raise ApiError(f"GITHUB_REPOSITORY is not a repository: {one_line(repository, 100)!r}")
    headers = {
        "Authorization": f"Bearer {_token('GITHUB_TOKEN')}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    api = Api(os.environ.get(_GITHUB, ""), _GITHUB, headers)
    if event.pull_request is not None:
        return GitHubComments(api, repository, event.pull_request.number)
    run = event.workflow_run
    owner = run.head_repository.owner if run is not None and run.head_repository is not None else None
    if run is None or run.event != "pull_request" or owner is None or not run.head_branch:
        raise NotAPullRequest("the measuring job was not about a pull request")
    number = pull_of_branch(api, repository, owner.login, run.head_branch, run.head_sha)
    if number is None:
        raise NotAPullRequest(f"no open pull request has the measured commit: {_NEW_HEAD}")
    return GitHubComments(api, repository, number)


def _event() -> _Event:
    """Return the event that started a job of GitHub. Raises ApiError."""
    path = os.environ.get("GITHUB_EVENT_PATH", "")
    try:
        with Path(path).open("rb") as file:
            text = file.read(_LARGEST_EVENT + 1)
        if len(text) > _LARGEST_EVENT:
            raise ApiError("the event of GITHUB_EVENT_PATH is too large")
        return _Event.model_validate_json(text)
    except OSError as error:
        raise ApiError(f"the event of GITHUB_EVENT_PATH cannot be read: {error.strerror}") from None
    except ValidationError:
        raise ApiError("the file of GITHUB_EVENT_PATH is not an event of GitHub") from None


def _on_gitlab() -> Comments:
    names = ("CI_MERGE_REQUEST_PROJECT_ID", "CI_MERGE_REQUEST_IID")
    project, number = (os.environ.get(name, "") for name in names)
    if not number:
        raise NotAPullRequest("this job is not about a merge request")
    for name, value in zip(names, (project, number), strict=True):
        if not _NUMBER.fullmatch(value):
            raise ApiError(f"{name} is not a number: {one_line(value, 100)!r}")
    api = Api(os.environ.get(_GITLAB, ""), _GITLAB, {"PRIVATE-TOKEN": _token("GITLAB_TOKEN")})
    return GitLabComments(api, int(project), int(number))
