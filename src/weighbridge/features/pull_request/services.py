"""The comments of a pull request on GitHub and of a merge request on GitLab: find our own, create it, edit it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel, Field

from weighbridge.features.pull_request.api import Api, ReadOnlyError

PER_PAGE, MOST_PAGES = 100, 100
_BOT = "Bot"


class _GitHubUser(BaseModel):
    login: str = ""
    type: str = ""


class _GitHubComment(BaseModel):
    id: int = Field(ge=0)
    body: str | None = None
    user: _GitHubUser | None = None


class _GitLabUser(BaseModel):
    id: int = Field(ge=0)


class _GitLabNote(BaseModel):
    id: int = Field(ge=0)
    body: str | None = None
    author: _GitLabUser | None = None


class _Sha(BaseModel):
    sha: str


class _Pull(BaseModel):
    number: int = Field(ge=1)
    head: _Sha


class Comments(Protocol):
    """The comments of one pull request. Every method raises ReadOnlyError and ApiError."""

    def own(self, marker: str) -> int | None:
        """Return the number of the first comment of this token's user that ends with the marker; None without one."""

    def create(self, text: str) -> None:
        """Write a new comment."""

    def edit(self, number: int, text: str) -> None:
        """Replace the text of a comment."""


_Item = TypeVar("_Item", _GitHubComment, _GitLabNote)


def _first(page: Callable[[int], Sequence[_Item]], marker: str, is_own: Callable[[_Item], bool]) -> int | None:
    """Return the number of the first own item that ends with the marker, on whichever page it is.

    A marker in front of other text is a quotation, for example in the comment of another bot.
    """
    for number in range(1, MOST_PAGES + 1):
        items = page(number)
        for each in items:
            if (each.body or "").rstrip().endswith(marker) and is_own(each):
                return each.id
        if len(items) < PER_PAGE:
            break
    return None


@dataclass(frozen=True, slots=True)
class GitHubComments:
    """The comments of a pull request of a repository, ``OWNER/NAME``."""

    api: Api
    repository: str
    number: int

    def own(self, marker: str) -> int | None:
        """Return the first own comment. A job's token does not know its user, who is then a bot."""
        try:
            login = self.api.get("user", {}, _GitHubUser).login
        except ReadOnlyError:
            login = ""

        def page(number: int) -> Sequence[_GitHubComment]:
            parameters = {"per_page": PER_PAGE, "page": number}
            return self.api.get(f"{self._issues}/{self.number}/comments", parameters, list[_GitHubComment])

        def is_own(each: _GitHubComment) -> bool:
            return each.user is not None and (each.user.login == login if login else each.user.type == _BOT)

        return _first(page, marker, is_own)

    def create(self, text: str) -> None:
        """Write a new comment."""
        self.api.send("POST", f"{self._issues}/{self.number}/comments", {"body": text}, _GitHubComment)

    def edit(self, number: int, text: str) -> None:
        """Replace the text of a comment."""
        self.api.send("PATCH", f"{self._issues}/comments/{number}", {"body": text}, _GitHubComment)

    @property
    def _issues(self) -> str:
        return f"repos/{self.repository}/issues"


@dataclass(frozen=True, slots=True)
class GitLabComments:
    """The notes of a merge request of a project."""

    api: Api
    project: int
    number: int

    def own(self, marker: str) -> int | None:
        """Return the first own note."""
        me = self.api.get("user", {}, _GitLabUser).id

        def page(number: int) -> Sequence[_GitLabNote]:
            parameters = {"per_page": PER_PAGE, "page": number, "sort": "asc", "order_by": "created_at"}
            return self.api.get(self._notes, parameters, list[_GitLabNote])

        return _first(page, marker, lambda each: each.author is not None and each.author.id == me)

    def create(self, text: str) -> None:
        """Write a new note."""
        self.api.send("POST", self._notes, {"body": text}, _GitLabNote)

    def edit(self, number: int, text: str) -> None:
        """Replace the text of a note."""
        self.api.send("PUT", f"{self._notes}/{number}", {"body": text}, _GitLabNote)

    @property
    def _notes(self) -> str:
        return f"projects/{self.project}/merge_requests/{self.number}/notes"


def pull_of_branch(api: Api, repository: str, owner: str, branch: str, commit: str) -> int | None:
    """Return the number of the open pull request whose head is this commit of a branch; None if there is none.

    So a job with the rights of the repository needs no number from a stranger's job.
    """
    parameters = {"state": "open", "head": f"{owner}:{branch}", "per_page": PER_PAGE}
    pulls = api.get(f"repos/{repository}/pulls", parameters, list[_Pull])
    return next((each.number for each in pulls if each.head.sha == commit), None)
