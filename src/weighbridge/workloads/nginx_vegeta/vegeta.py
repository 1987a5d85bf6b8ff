"""Reads the output of our program on vegeta's library: JSON lines of attacks, and of a search."""

import json
from typing import Any

from weighbridge.model.command import Completed
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Broke, Metric, ProgramFailed, Unparseable, require_success

LATENCIES = {key: Metric(f"latency_{key}", "ms", "lower") for key in ("p99", "p50", "p95", "max", "mean")}
"""The latencies by their key in the line, in which they are nanoseconds."""
REQUESTS = Metric("requests", "requests/s", "higher")
SUCCESS = Metric("success", "%", "higher")
ERRORS = {
    key: Metric(f"errors_{key}", "count", "lower")
    for key in ("connect", "read", "write", "timeout", "status", "unsent")
}
"""The errors by their key in the line."""
RATE_AT_OBJECTIVE = Metric("rate_at_objective", "requests/s", "higher")

_COUNTS = ("planned", "sent", "answered", "counted", "late_by_queue", "late_by_itself")
_NUMBERS = ("rate", "seconds", *(f"{key}_ns" for key in LATENCIES), "lag_p50_ns", "lag_p99_ns", "behind_ns")
_BEHIND_S = 0.1
"""A generator that keeps its rate is behind at its end by at most this time, or a hundredth of its time."""
_LAG_S = 0.01
"""Half of the requests of a generator that keeps its rate are late by at most this time."""
_LATE = 0.01
"""The share of late requests from which they are flagged, because the 99th percentile could consist of them."""


def attack(client: Completed, rate: float, server_limit: str) -> dict[str, Any]:
    """Return the complete attack at this rate. Times are in nanoseconds.

    ``server_limit`` is the server's message about a limit. Raises Broke if less than half of the requests were
    answered, ProgramFailed if the generator itself did not keep the rate, or Unparseable.
    """
    figures = _attack(_last(client, "attack"))
    if figures["rate"] != rate:
        raise Unparseable(f"the generator's line reports {_plain(figures['rate'])} requests/s, not {_plain(rate)}")
    _require_rate(figures)
    _require_answers(figures, server_limit)
    _require_histogram(figures)
    return figures


def search(client: Completed, objective_s: float, share: float, server_limit: str) -> tuple[float, tuple[Flag, ...]]:
    """Return the rate that a search found in requests/s, with a flag unless the server ended the search.

    Raises Broke if no rate meets the objective, ProgramFailed, or Unparseable.
    """
    result = _last(client, "search")
    attacks = [_attack(_object(line, "attack")) for line in client.text.splitlines()[:-1]]
    rate, number = _number(result, "rate"), _number(result, "attacks")
    met = [each["rate"] for each in attacks if each.get("met") is True]
    if number != len(attacks) or rate != max(met, default=0.0) or result.get("limit") not in _LIMITS:
        raise Unparseable(f"the search's result contradicts its {len(attacks)} attacks")
    other_share = abs(_number(result, "share") - share) > 1e-6
    if other_share or abs(_number(result, "objective_ns") - objective_s * 1e9) > 1e3:
        raise Unparseable("the search's result has another objective")
    if not rate:
        _none_met(attacks, objective_s, share, server_limit)
    ended_by = _LIMITS[result["limit"]]
    return rate, (Flag(ended_by),) if ended_by else ()


def lateness(figures: dict[str, Any]) -> tuple[Flag, ...]:
    """Return flags if requests of an `attack` were late because of the generator, or waited for a connection."""
    shares = {
        FlagCode.GENERATOR_LATE: figures["late_by_itself"] / figures["planned"],
        FlagCode.CONNECTION_WAIT: figures["late_by_queue"] / figures["planned"],
    }
    return tuple(Flag(code, figures={"share": share}) for code, share in shares.items() if share > _LATE)


_LIMITS = {
    "server": None,
    "generator": FlagCode.SEARCH_GENERATOR,
    "connections": FlagCode.SEARCH_CONNECTIONS,
    "to": FlagCode.SEARCH_TO,
}
"""The reasons for the end of a search, with their flags."""


def _none_met(attacks: list[dict[str, Any]], objective_s: float, share: float, server_limit: str) -> None:
    """Raise the failure of a search that found no rate."""
    lowest = min(attacks, key=lambda each: float(each["rate"]))
    if lowest.get("limit") == "generator":
        raise ProgramFailed(
            f"the generator itself misses the objective at {_plain(lowest['rate'])} requests/s: "
            f"its 99th percentile of lag is {lowest['lag_p99_ns'] / 1e6:.3g} ms"
        )
    what = f"{100 * share:g} % within {1000 * objective_s:g} ms"
    why = (
        server_limit
        or f"{lowest['answered']:.0f} of {lowest['sent']:.0f} were answered, p99 {lowest['p99_ns'] / 1e6:.3g} ms"
    )
    at = f"{_plain(lowest['rate'])} requests/s"
    raise Broke(f"the objective ({what}) is missed even at {at}: {why}{_texts(lowest)}")


def _require_rate(figures: dict[str, Any]) -> None:
    planned_s = figures["planned"] / figures["rate"]
    unsent = figures["errors"]["unsent"] and figures.get("unsent_by_queue") is not True
    behind_s, lag_s = figures["behind_ns"] / 1e9, figures["lag_p50_ns"] / 1e9
    if unsent or behind_s > max(_BEHIND_S, planned_s / 100) or lag_s > _LAG_S:
        half, last = f"{1e3 * lag_s:.0f}", f"{1e3 * behind_s:.0f}"
        late = f", half of them over {half} ms late" if half != "0" else ""
        late += f", the last {last} ms{'' if late else ' late'}" if last != "0" else ""
        raise ProgramFailed(
            f"the generator could not keep {_plain(figures['rate'])} requests/s: it sent "
            f"{figures['sent']:.0f} of {figures['planned']:.0f}{late}; "
            "use a lower rate, or give the client more CPU"
        )


def _require_answers(figures: dict[str, Any], server_limit: str) -> None:
    planned, answers = figures["planned"], figures["answered"]
    if answers >= planned / 2:
        return
    kinds = ", ".join(f"{kind} {count:.0f}" for kind, count in figures["errors"].items() if count)
    what = f"{planned - answers:.0f} of {planned:.0f} requests failed" if answers else "no request was answered"
    cause = f": {server_limit}" if server_limit else _texts(figures)
    raise Broke(f"{what} at {_plain(figures['rate'])} requests/s ({kinds}){cause}")


def _plain(rate: float) -> str:
    """Return a rate without an exponent: 1000000, not 1e+06."""
    return f"{rate:.12g}"


def _texts(figures: dict[str, Any]) -> str:
    """Return the most frequent complaint, or ""."""
    complaints = figures.get("said")
    counts = complaints if isinstance(complaints, dict) else {}
    numbers = {text: count for text, count in counts.items() if isinstance(count, int | float)}
    return f": {max(numbers, key=lambda text: numbers[text])[:200]}" if numbers else ""


def _require_histogram(figures: dict[str, Any]) -> None:
    from weighbridge.statistics.histogram import Histogram

    try:
        counted = Histogram.decode(figures["histogram"]).count
    except (KeyError, ValueError) as error:
        raise Unparseable(f"the generator's histogram cannot be decoded ({error})") from error
    if counted != figures["counted"]:
        raise Unparseable(f"the generator counted {figures['counted']:.0f} latencies, its histogram {counted}")


def _attack(figures: dict[str, Any]) -> dict[str, Any]:
    """Return an attack whose numbers are all present and possible."""
    for key in (*_COUNTS, *_NUMBERS):
        _number(figures, key)
    errors = figures.get("errors")
    if not isinstance(errors, dict):
        raise Unparseable("the generator's line has no errors")
    failed = {key: _number(errors, key) for key in ERRORS}
    ended = figures["answered"] + sum(failed.values())
    waited = figures["answered"] + failed["timeout"] + failed["unsent"]
    early = figures.get("met") is False
    if not all(figures[key] > 0 for key in ("rate", "planned", "seconds")) or figures["sent"] > figures["planned"]:
        raise Unparseable("the generator's line reports an attack without requests")
    if waited != figures["counted"] or (ended != figures["planned"] and not (early and ended == figures["sent"])):
        raise Unparseable(f"the generator's counts do not add up: {ended:.0f} of {figures['planned']:.0f} requests")
    return figures


def _number(figures: dict[str, Any], key: str) -> float:
    value = figures.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not (value == 0 or 1e-9 <= value <= 1e30):
        raise Unparseable(f"the generator's line has no usable {key} (it is {json.dumps(value)[:40]})")
    return value


def _last(client: Completed, what: str) -> dict[str, Any]:
    """Return the object "attack" or "search" in the client's last line. Raises ProgramFailed or Unparseable."""
    return _object((require_success(client, "the generator").text.splitlines() or [""])[-1], what)


def _object(line: str, what: str) -> dict[str, Any]:
    try:
        # as floats: a whole number of four hundred digits is none that can be counted with
        read = json.loads(line, parse_int=float)
    except (ValueError, RecursionError) as error:
        raise Unparseable(f"the generator's line is not JSON: '{line[:80]}'") from error
    document = read.get(what) if isinstance(read, dict) else None
    if not isinstance(document, dict):
        raise Unparseable(f"the generator's line does not report {'an attack' if what == 'attack' else 'a search'}")
    return document
