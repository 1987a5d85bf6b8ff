"""Converts flags to and from JSON, and reads the sentences that were the flags of runs before version 3."""

import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import LARGEST

_N = r"(\d+(?:\.\d+)?)"
_HOST = re.compile(r"(host [A-Za-z][A-Za-z0-9_.-]{0,39}): (.+)", re.DOTALL)
_SHARES: dict[str, tuple[FlagCode, str]] = {
    "steal": (FlagCode.STEAL, ""),
    "memory pressure": (FlagCode.MEMORY_PRESSURE, ""),
    "io pressure": (FlagCode.IO_PRESSURE, ""),
    "client throttled": (FlagCode.THROTTLED, "client"),
    "server throttled": (FlagCode.THROTTLED, "server"),
    "solo throttled": (FlagCode.THROTTLED, "solo"),
    "generator late": (FlagCode.GENERATOR_LATE, ""),
    "generator rested": (FlagCode.GENERATOR_RESTED, ""),
    "waited for a connection": (FlagCode.CONNECTION_WAIT, ""),
}
"""The words before a share in percent -> the code and role."""


def _share(match: re.Match[str]) -> Flag:
    code, where = _SHARES[match[1]]
    return Flag(code, where, {"share": float(match[2]) / 100})


def _took(match: re.Match[str]) -> Flag:
    client, cpus, server = map(float, match.groups())
    return Flag(FlagCode.GENERATOR_TOOK, figures={"client": client, "server": server, "cpus": cpus})


def _only(code: FlagCode) -> Callable[[re.Match[str]], Flag]:
    return lambda _: Flag(code)


_SENTENCES: tuple[tuple[str, Callable[[re.Match[str]], Flag]], ...] = (
    (rf"({'|'.join(_SHARES)}) {_N} ?%", _share),
    (rf"work outside the sites {_N}% of a CPU",
     lambda match: Flag(FlagCode.OTHER_WORK, figures={"cpus": float(match[1]) / 100})),
    (rf"generator took {_N} of {_N} CPUs, the server {_N}", _took),
    ("generator saturated", _only(FlagCode.GENERATOR_SATURATED)),
    ("the generator, not the server, missed the objective .*", _only(FlagCode.SEARCH_GENERATOR)),
    ("all connections were in use where the objective was missed", _only(FlagCode.SEARCH_CONNECTIONS)),
    ("no rate up to search_to missed the objective", _only(FlagCode.SEARCH_TO)),
    (rf"load {_N}.*", lambda match: Flag(FlagCode.LOAD, figures={"load": float(match[1])})),
    ("no readings of (host .+?): (.+)", lambda match: Flag(FlagCode.NO_READINGS, match[1], text=match[2])),
    ("prometheus: (.+)", lambda match: Flag(FlagCode.PROMETHEUS, text=match[1])),
)  # fmt: skip
"""Every sentence that was ever written, and its flag."""


def flags_json(flags: Iterable[Flag]) -> str:
    """Return the flags as they are stored: a JSON list of objects, without empty parts."""
    parts = ({"code": str(f.code), "where": f.where, "figures": dict(f.figures), "text": f.text} for f in flags)
    return json.dumps([{key: value for key, value in each.items() if value} for each in parts])


@lru_cache(maxsize=4096)  # many trials have the same flags, most of them none
def flags_of(stored: str) -> tuple[Flag, ...]:
    """Return the flags in a stored list of objects, or of an older run's sentences. Raises ValueError otherwise."""
    try:
        entries = json.loads(stored)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError("expected a list of flags") from error
    if not isinstance(entries, list):
        raise ValueError("expected a list of flags")
    return tuple(flag_of_sentence(each) if isinstance(each, str) else _flag(each) for each in entries)


def _flag(stored: object) -> Flag:
    if not isinstance(stored, dict) or "code" not in stored or not isinstance(stored.get("figures", {}), dict):
        raise ValueError("expected a flag with a code")
    figures = {name: float(value) for name, value in stored.get("figures", {}).items() if _is_number(value)}
    return Flag(str(stored["code"]), str(stored.get("where", "")), figures, str(stored.get("text", "")))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) <= LARGEST


def flag_of_sentence(sentence: str) -> Flag:
    """Return the flag for a sentence of an older run; an unknown sentence is kept as text."""
    host = _HOST.fullmatch(sentence)
    for pattern, flag_of in _SENTENCES:
        if match := re.fullmatch(pattern, host[2] if host else sentence, re.DOTALL):
            flag = flag_of(match)
            return Flag(flag.code, host[1], flag.figures, flag.text) if host else flag
    return Flag(FlagCode.OTHER, text=sentence)
