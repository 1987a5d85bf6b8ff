"""A server in this process that answers the few calls of GitHub's and GitLab's API that a comment needs."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT, USER = "github-actions[bot]", "somebody"


class Service:
    """The comments of pull request 7, and what was asked. ``faults`` has answers by method, instead of usual ones."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.pulls: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str, str]] = []
        """Method, path and token of each request."""
        self.faults: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.me: dict[str, Any] | None = None
        """The user of the token; None if the token is a job's."""
        self.address = ""

    def add(self, body: str, *, login: str = BOT, kind: str = "Bot", author: int = 1) -> int:
        """Add a comment, in the form of both services; return its number."""
        number = len(self.comments) + 1
        user = {"login": login, "type": kind}
        self.comments.append({"id": number, "body": body, "user": user, "author": {"id": author}, "system": False})
        return number

    def answer(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        """Return the status and the document of an answer."""
        parts, query = urlsplit(path).path, parse_qs(urlsplit(path).query)
        if parts == "/api/user":
            return (200, self.me) if self.me else (403, {"message": "Resource not accessible by integration"})
        if parts == "/api/repos/o/r/pulls":
            return 200, self.pulls
        if method == "GET":
            page, size = int(query["page"][0]), int(query["per_page"][0])
            return 200, self.comments[(page - 1) * size : page * size]
        if method == "POST":
            self.add(body["body"] if body else "")
            return 201, self.comments[-1]
        found = [each for each in self.comments if str(each["id"]) == parts.rpartition("/")[2]]
        if not found:
            return 404, {"message": "Not Found"}
        found[0]["body"] = body["body"] if body else ""
        return 200, found[0]


@contextmanager
def served(service: Service) -> Iterator[Service]:
    """Serve it on a free port of the loopback interface."""

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or ""
            service.asked.append((self.command, self.path, token))
            if self.command in service.faults:
                status, text, headers = service.faults[self.command]
            else:
                status, document = service.answer(self.command, self.path, body)
                text, headers = json.dumps(document).encode(), {"Content-Type": "application/json"}
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_PUT = _respond

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    service.address = f"http://127.0.0.1:{server.server_port}/api"
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
