"""Compiles JSONPaths and regular expressions for metrics. Its libraries load slowly, so only `metrics` imports it."""

from functools import cache
from typing import Any

import jsonpath
import regex as bounded
from jsonpath.function_extensions import Match, Search

MATCHING_S = 5.0
"""The time limit of an expression in seconds. An expression that backtracks again and again never ends."""
PathError = jsonpath.JSONPathError
RegexError = bounded.error


@cache
def path(text: str) -> jsonpath.CompoundJSONPath | jsonpath.JSONPath:
    """Compile a JSONPath. Raises `PathError`."""
    environment = jsonpath.JSONPathEnvironment(strict=True)
    environment.function_extensions |= {"match": _BoundedMatch(), "search": _BoundedSearch()}
    return environment.compile(text)


@cache
def regex(text: str) -> Any:
    """Compile an expression whose matching time can be limited. Raises `RegexError`."""
    return bounded.compile(text, bounded.MULTILINE)


class _BoundedMatch(Match):
    """`match()` of RFC 9535. Raises TimeoutError."""

    def __call__(self, value: object, pattern: object) -> bool:
        compiled: Any = self.check_cache(pattern) if isinstance(value, str) and isinstance(pattern, str) else None
        return compiled is not None and bool(compiled.fullmatch(value, timeout=MATCHING_S))


class _BoundedSearch(Search):
    """`search()` of RFC 9535. Raises TimeoutError."""

    def __call__(self, value: object, pattern: object) -> bool:
        compiled: Any = self.check_cache(pattern) if isinstance(value, str) and isinstance(pattern, str) else None
        return compiled is not None and bool(compiled.search(value, timeout=MATCHING_S))
