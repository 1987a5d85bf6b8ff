"""Things that several threads need and that are made once."""

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class _Thing:
    __slots__ = ("lock", "made", "value")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.made = False
        self.value: Any = None


class Once:
    """Things by key, with one lock per key: a thread makes the thing, and others that need it wait."""

    def __init__(self) -> None:
        self._things: dict[Hashable, _Thing] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the thing, made at first use. If that fails, the next thread tries again."""
        thing = self._things.setdefault(key, _Thing())
        with thing.lock:
            if not thing.made:
                thing.value = make()
                thing.made = True
        value: T = thing.value
        return value
