"""Metrics that a study reads from the output of its own command, with JSONPath (RFC 9535) or a regular expression."""

import json
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from weighbridge.model.command import Completed
from weighbridge.model.measurement import Better, Measurement, Metric, Unparseable, is_plausible
from weighbridge.model.options import Options

_STREAMS = {"stdout": "standard output", "stderr": "standard error"}
_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]{1,300}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?\s*")


def _is_path(text: str) -> str:
    from weighbridge.workloads.command import expressions

    try:
        expressions.path(text)
    except expressions.PathError as error:
        why = str(error).splitlines()[0] if text.startswith("$") else "begin it with $, as in $.summary.rps"
        raise ValueError(f"'{text:.60}' is not a JSONPath (RFC 9535): {why:.120}") from None
    return text


def _is_regex(text: str) -> str:
    from weighbridge.workloads.command import expressions

    try:
        groups = re.compile(text, re.MULTILINE).groups
        expressions.regex(text)
    except (re.error, expressions.RegexError, OverflowError, RecursionError) as error:
        problem = str(getattr(error, "msg", error))
        problem = "a closing parenthesis is missing" if problem.startswith("missing )") else problem
        raise ValueError(f"the regular expression '{text:.60}' has an error: {problem}") from None
    if groups != 1:
        raise ValueError(f"'{text:.60}' has {groups} groups: put parentheses around the number, and nothing else")
    return text


class MetricOptions(Options):
    """One number of the output: its place, its unit and which direction is better."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    path: Annotated[
        Annotated[str, AfterValidator(_is_path)] | None,
        Field(alias="json", description="JSONPath (RFC 9535) of one number: $.summary.rps"),
    ] = None
    regex: Annotated[
        Annotated[str, AfterValidator(_is_regex)] | None,
        Field(
            description="Regular expression that matches once; its group is the number. ^ and $ match at line ends"
        ),
    ] = None
    unit: Annotated[
        str,
        Field(pattern=r"^[^\s\x00-\x1f]{1,20}$", description="The metric's unit: s, ms, 1/s, MiB/s, %, count, ..."),
    ]
    better: Annotated[Better, Field(description="Which direction is better")]
    stream: Annotated[
        Literal["stdout", "stderr"], Field(alias="from", description="Stream to read: stdout or stderr")
    ] = "stdout"

    @model_validator(mode="after")
    def _by_one_way(self) -> "MetricOptions":
        if (self.path is None) == (self.regex is None):
            raise ValueError("needs either 'json: PATH' or 'regex: EXPRESSION'")
        return self

    def metric(self, name: str) -> Metric:
        """Return the metric with this name."""
        return Metric(name, self.unit, self.better)


def read_metrics(metrics: Mapping[str, MetricOptions], completed: Completed) -> tuple[Measurement, ...]:
    """Return the value of each metric. Raises Unparseable, which names the first metric without a value."""
    printed = {"stdout": completed.text, "stderr": completed.error_text}
    documents: dict[str, Any] = {}
    measurements = []
    for name, options in metrics.items():
        where, text = _STREAMS[options.stream], printed[options.stream]
        if options.path is not None:
            if options.stream not in documents:
                documents[options.stream] = _document(text, name, where)
            value = _by_path(options.path, documents[options.stream], name, where)
        else:
            value = _by_regex(options.regex or "", text, name, where)
        measurements.append(Measurement(options.metric(name), value))
    return tuple(measurements)


def _document(text: str, name: str, where: str) -> Any:
    if not text.strip():
        raise Unparseable(f"metric {name}: {where} is empty, but should be JSON")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Unparseable(f"metric {name}: {where} is not JSON ({why})") from None


def _by_path(path: str, document: Any, name: str, where: str) -> float:
    from weighbridge.workloads.command import expressions

    try:
        values = expressions.path(path).findall(document)
    except TimeoutError:
        raise Unparseable(_endless(f"metric {name}: {path}", where, expressions.MATCHING_S)) from None
    except (expressions.PathError, RecursionError) as error:
        raise Unparseable(f"metric {name}: {path} cannot be followed in {where}: {error}") from None
    value = _only(values, f"metric {name}: {path}", where)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unparseable(f"metric {name}: {path} in {where} is {json.dumps(value)[:60]}, not a number")
    return _finite(value, f"metric {name}: {path} in {where}")


def _by_regex(regex: str, text: str, name: str, where: str) -> float:
    from weighbridge.workloads.command import expressions

    try:
        values = [match[1] for match in expressions.regex(regex).finditer(text, timeout=expressions.MATCHING_S)]
    except TimeoutError:
        raise Unparseable(_endless(f"metric {name}: /{regex}/", where, expressions.MATCHING_S)) from None
    value = _only(values, f"metric {name}: /{regex}/", where)
    if value is None or _NUMBER.fullmatch(value) is None:
        raise Unparseable(f"metric {name}: /{regex}/ in {where} gives '{(value or '')[:60]}', not a number")
    return _finite(float(value), f"metric {name}: /{regex}/ in {where}")


def _endless(what: str, where: str, limit_s: float) -> str:
    return f"{what} took longer than {limit_s:g} s in {where}: write a simpler expression"


def _only(values: list[Any], what: str, where: str) -> Any:
    if not values:
        raise Unparseable(f"{what} finds nothing in {where}")
    if len(values) > 1:
        raise Unparseable(f"{what} finds {len(values)} values in {where}, but must find exactly one")
    return values[0]


def _finite(value: float, what: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not is_plausible(number):
        raise Unparseable(f"{what} is {number}, which is not a valid measurement")
    return number
