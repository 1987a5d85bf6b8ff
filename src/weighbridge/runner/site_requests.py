"""How the sites of a run were asked for, so that one more of each can be."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from weighbridge.model.environment import Environment
from weighbridge.model.site import Site, SiteRequest, SiteStorage
from weighbridge.model.study import Role

Key = tuple[str, Role, str]
"""A site: its environment or "outside", its role, and the host of the clients that it is for."""


@dataclass(slots=True)
class SiteRequests:
    """The request behind each open site."""

    _made: dict[Key, tuple[Environment, Any, SiteRequest]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def name(self, key: Key) -> str:
        """A name that no other site of the run has or had."""
        place, role, _ = key
        return f"{next(self._numbers)}-{re.sub('[^A-Za-z0-9]+', '-', place).strip('-')}-{role}"

    def open(
        self, key: Key, environment: Environment, options: Any, request: SiteRequest
    ) -> AbstractContextManager[Site]:
        """Open a site, and keep how."""
        self._made[key] = environment, options, request
        return environment.open(options, request)

    def open_beside(self, key: Key) -> AbstractContextManager[Site]:
        """Open one more like it, which publishes no port and is the caller's."""
        environment, options, request = self._made[key]
        return environment.open(options, replace(request, name=self.name(key), ports=(), beside=request.name))

    def open_sharing(self, key: Key) -> AbstractContextManager[Site]:
        """Open one more like it that has the same storage, which the first one closes."""
        environment, options, request = self._made[key]
        storage = request.storage
        if storage is not None and storage.mounts:
            storage = SiteStorage(storage.kind, lambda _, mount=storage.mounts[0]: nullcontext(mount))  # type: ignore[misc]
        beside = replace(request, name=self.name(key), ports=(), beside=request.name, storage=storage)
        return environment.open(options, beside)
