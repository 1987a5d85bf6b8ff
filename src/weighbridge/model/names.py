"""Names that become paths, control groups and containers, as types that cannot hold anything else.

Text from a file, a label, a variable or another machine stays text until one of these types accepts it. The types are
strings, so every function that accepts text accepts them; a function that deletes or kills accepts only them.

This module uses no library, because the agent on a remote host imports it, too.
"""

import re
import secrets
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from re import Pattern


_N = TypeVar("_N", bound="_Name")


class _Name(str):
    """Text that matches ``pattern`` completely. Raises ValueError for any other."""

    __slots__ = ()
    pattern: "ClassVar[Pattern[str]]"
    description: ClassVar[str]

    def __new__(cls: "type[_N]", text: str) -> "_N":
        if type(text) is not cls and (not isinstance(text, str) or cls.pattern.fullmatch(text) is None):
            raise ValueError(f"{str(text)[:60]!r} is not {cls.description}")
        return super().__new__(cls, text)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Return pydantic's schema (a plain mapping): text that does not match is an error of the field."""
        function = {"type": "no-info", "function": cls}
        return {"type": "function-after", "function": function, "schema": {"type": "str", "strict": True}}


class RunId(_Name):
    """The id of a run: twelve lower-case hexadecimal digits."""

    __slots__ = ()
    pattern = re.compile(r"[0-9a-f]{12}")
    description = "the id of a run (12 hexadecimal digits)"

    @classmethod
    def new(cls) -> "RunId":
        """Return an id that no other run has."""
        return cls(secrets.token_hex(6))

    @classmethod
    def matches(cls, text: str) -> bool:
        """Return whether the text is the id of a run."""
        return cls.pattern.fullmatch(text) is not None


class SafeName(_Name):
    """One part of a path or of a control group's name: no separator, never ``.`` or ``..``, no control character."""

    __slots__ = ()
    pattern = re.compile(r"\.?[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,199}")
    description = "a name that can be part of a path (letters, digits, '_', '.', '+', '@', '-')"


class GroupName(str):
    """The name of a control group of a run: the run's id, then the parts below it, as in ``RUN/ssh-HOST/SITE``."""

    __slots__ = ()

    def __new__(cls, run_id: RunId, *parts: str) -> "GroupName":
        """Create the name from its parts. Raises ValueError for a part that is not a `SafeName`."""
        return super().__new__(cls, "/".join((RunId(run_id), *map(SafeName, parts))))

    @property
    def parts(self) -> "tuple[SafeName, ...]":
        """The names of the group and of each group above it, the run's first."""
        return tuple(map(SafeName, self.split("/")))

    def below(self, path: str) -> "GroupName":
        """Return the name of a group below this one. Raises ValueError for a part that is not a `SafeName`."""
        run_id, *parts = self.parts
        return GroupName(RunId(run_id), *parts, *path.split("/"))
