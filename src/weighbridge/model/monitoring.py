"""The Prometheus server that a study names: whose series are kept with each trial."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from weighbridge.model.options import Brings, Name, Options
from weighbridge.model.quantity import Duration


def _server_address(url: str) -> str:
    """The address of a server without the slash at its end. No message repeats it: it may hold a password."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("an address has no spaces and only ASCII characters: http://127.0.0.1:9090")
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that do not close
        known = False
    if not known:
        raise ValueError("write the server's address like http://127.0.0.1:9090 (http or https)")
    if "@" in parts.netloc:
        raise ValueError("an address with a user or password is not taken: it would be kept with every run")
    if "?" in url or "#" in url:
        raise ValueError("the address ends before '?' and '#': queries have a key of their own")
    return url.rstrip("/")


class Query(Options):
    """A PromQL ``query`` whose series are kept with every trial, and the ``unit`` of their values (B/s, s, 1)."""

    query: Annotated[str, Field(min_length=1, max_length=4000, description="PromQL")]
    unit: Annotated[str, Field(pattern=r"^\S{1,20}$", description="The unit of its values", examples=["B/s"])]


class Prometheus(Options):
    """A Prometheus server that watches the hosts: what its ``queries`` give for each trial's time is kept with it.

    ``step`` is the time between two values: the interval in which the server scrapes what they are about.
    """

    url: Annotated[
        str,
        AfterValidator(_server_address),
        Field(description="Its address", json_schema_extra={"pattern": r"^https?://[^\s/@?#]+(/[^\s@?#]*)?$"}),
        Brings.SERVER,
    ]
    queries: dict[Name, Query] = Field(min_length=1, max_length=20)
    step: Annotated[Duration, Field(ge=0.1, le=3600)] = 1.0
