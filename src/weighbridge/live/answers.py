"""Answers that stay the same until something happened: to a second scrape in one trial nothing is computed again."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_DECIDES = ("REQUEST_METHOD", "PATH_INFO", "HTTP_ACCEPT", "HTTP_ACCEPT_ENCODING")
_MOST = 8
"""Answers kept at once: one for each kind of client."""


class Kept:
    """A WSGI application before another one, whose answers it keeps for as long as ``version`` gives the same."""

    def __init__(self, application: "WSGIApplication", version: Callable[[], int]) -> None:
        self._application, self._version = application, version
        self._at = -1
        self._answers: dict[tuple[object, ...], tuple[str, list[tuple[str, str]], bytes]] = {}

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer a request; one that names metrics is always passed on."""
        version = self._version()  # before the answer is made: should it be newer, it is only made once more
        if version != self._at:
            self._answers, self._at = {}, version
        answers, key = self._answers, tuple(environ.get(name) for name in _DECIDES)
        answer = answers.get(key)
        if answer is None or environ.get("QUERY_STRING"):
            answer = self._asked(environ)
            if len(answers) < _MOST and not environ.get("QUERY_STRING"):
                answers[key] = answer
        status, headers, body = answer
        start_response(status, list(headers))  # what is sent adds to its list
        return [body]

    def _asked(self, environ: "WSGIEnvironment") -> tuple[str, list[tuple[str, str]], bytes]:
        told: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, headers: list[tuple[str, str]], _: Any = None, /) -> Callable[[bytes], object]:
            told.append((status, headers))
            return lambda _: None

        body = b"".join(self._application(environ, start))
        return (*told[0], body)
