"""The right spellings that are nearest to a wrong word."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

_MOST_MEANT = 3


def nearest(word: object, choices: Iterable[object], *, slips_only: bool = False) -> str:
    """Return ``. Did you mean 'X'?`` with the nearest right spellings, or an empty text if none is near.

    A typing error comes first, then a name that shares a word (redis: redis-benchmark), then a similar name.
    ``slips_only``: suggest only typing errors, because the message lists every choice anyway.
    """
    by_lower, lower = {str(name).lower(): str(name) for name in choices}, str(word).lower()
    matches = get_close_matches(lower, by_lower, n=1, cutoff=0.8)
    if not slips_only:
        matches = matches or [name for name in by_lower if _akin(lower, name)]
    if not slips_only and not 1 <= len(matches) <= _MOST_MEANT:
        matches = get_close_matches(lower, by_lower, n=1, cutoff=0.6)
    suggestions = " or ".join(f"'{by_lower[name]}'" for name in matches)
    return f". Did you mean {suggestions}?" if matches else ""


def _akin(word: str, name: str) -> bool:
    """Return whether two names share a word, or one begins with the other."""
    if min(len(word), len(name)) >= 3 and (name.startswith(word) or word.startswith(name)):
        return True
    return any(len(part) >= 3 for part in {*re.split("[-_. ]", word)} & {*re.split("[-_. ]", name)})
