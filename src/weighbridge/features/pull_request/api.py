"""Requests to the REST API of a service. The token goes to one address only, and into no message."""

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from pydantic import TypeAdapter, ValidationError

from weighbridge.errors import WeighbridgeError
from weighbridge.model.text import one_line

ANSWER_S = 30.0
LARGEST_ANSWER = 16 * 2**20
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")
T = TypeVar("T")


class ApiError(WeighbridgeError):
    """The service of the pull request does not answer, or answers with an error."""


class ReadOnlyError(Exception):
    """The token cannot write a comment there, or the token is missing."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which could lead to another host: the token would follow it."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return None: the redirect is an error."""


_OPENER = urllib.request.build_opener(_NoRedirect)


@dataclass(frozen=True, slots=True)
class Api:
    """An API at ``address``, the value of the variable ``variable``. ``headers`` have the token."""

    address: str
    variable: str
    headers: Mapping[str, str] = field(repr=False)

    def __post_init__(self) -> None:
        """Check the address. Raises ApiError."""
        try:
            parts = urlsplit(self.address)
            host = (parts.hostname or "").encode("idna")
            usable = parts.scheme in ("http", "https") and bool(host) and parts.port != 0
        except ValueError:  # a port that is not a number, or a name that no host can have
            usable = False
        if not (usable and self.address.isascii() and self.address.isprintable()) or set(self.address) & set(" @?#"):
            raise ApiError(f"{self.variable} is not the address of an API: {one_line(self.address, 100)!r}")

    def get(self, path: str, parameters: Mapping[str, object], kind: type[T]) -> T:
        """Return the answer for a path as ``kind``. Raises ReadOnlyError for 403 and 404, and ApiError."""
        return self._checked(path, kind, self._send("GET", f"{path}?{urlencode(parameters)}", None))

    def send(self, method: str, path: str, document: Mapping[str, Any], kind: type[T]) -> T:
        """Send a document, and return the answer as ``kind``. Raises ReadOnlyError for 403 and 404, and ApiError."""
        return self._checked(path, kind, self._send(method, path, json.dumps(document).encode()))

    def _send(self, method: str, path: str, body: bytes | None) -> bytes:
        content = {"Content-Type": "application/json"} if body is not None else {}
        url = f"{self.address.rstrip('/')}/{path}"
        headers = {"User-Agent": "weighbridge", **content, **self.headers}
        request = urllib.request.Request(url, body, headers, method=method)  # noqa: S310 - the scheme is checked
        try:
            with _OPENER.open(request, timeout=ANSWER_S) as answer:
                text: bytes = answer.read(LARGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(path, error.code) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            reason = getattr(reason, "strerror", None) or type(reason).__name__
            raise ApiError(f"{self._where(path)} does not answer: {one_line(reason, 200)}") from None
        if len(text) > LARGEST_ANSWER:
            raise ApiError(f"{self._where(path)} answers with more than {LARGEST_ANSWER >> 20} MiB")
        return text

    def _refusal(self, path: str, status: int) -> Exception:
        if status in (403, 404):
            return ReadOnlyError(f"HTTP {status}")
        if status == 401:
            return ApiError(f"{self._where(path)} does not accept the token (HTTP 401)")
        if 300 <= status < 400:
            return ApiError(f"{self._where(path)} redirects to another address (HTTP {status}), which gets no token")
        return ApiError(f"{self._where(path)} answers with an error (HTTP {status}). Try again later")

    def _checked(self, path: str, kind: type[T], text: bytes) -> T:
        try:
            return TypeAdapter(kind).validate_json(text)
        except ValidationError:
            raise ApiError(f"{self._where(path)} answers with something else than was asked for") from None

    def _where(self, path: str) -> str:
        return f"{self.address.rstrip('/')}/{path.partition('?')[0]}"


def token_of(variable: str, value: str) -> str:
    """Return a token. Raises ReadOnlyError without one, and ApiError if it is not one word of ASCII letters."""
    if not value:
        raise ReadOnlyError(f"{variable} is not set")
    if not _TOKEN.fullmatch(value):
        raise ApiError(f"{variable} is not a token: it contains a blank or another special character")
    return value
