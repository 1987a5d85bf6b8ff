"""What is asked of every adapter beside what is asked of every plug-in."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from weighbridge.model.adapter import Adapter, AdapterOptions
from weighbridge.model.measurement import OF_PROGRAM, TrialFailure, is_resource_use

from .held import must

GARBAGE = (b"", b"\n", b"\0" * 100, b"\xff\xfe", b"[" * 100_000, b"{}", b"[]", b"null", b"1e999", b'{"a": [{}]}')


def holds_as_adapter(adapter: Adapter, given: Mapping[str, Any]) -> None:
    """Under these options; what depends on an option is held under others too."""
    must(adapter, issubclass(adapter.options, AdapterOptions), "options", "derive from AdapterOptions")
    taken = get_args(adapter.options.model_fields["kind"].annotation)
    must(adapter, taken == (adapter.kind,), "options", f"have 'kind: Literal[{adapter.kind!r}]'", taken)
    told = bool(adapter.usage) and "\n" not in adapter.usage
    must(adapter, told, "usage", "be the command line, on one line, whose output it reads", adapter.usage)
    options = adapter.options.model_validate(given)
    metrics = options.metrics()
    names = [metric.name for metric in metrics]
    must(adapter, bool(names) and len({*names}) == len(names), "metrics()", "be one or more, each once", names)
    must(adapter, metrics == options.metrics(), "metrics()", "be the same when asked twice")
    taken_names = {"time", *(metric.name for metric in OF_PROGRAM)}
    for metric in metrics:
        named = bool(re.fullmatch(r"[a-z][a-z0-9_]*", metric.name) and metric.unit)
        must(adapter, named, "metrics()", "have names such as mean_latency, and units", metric)
        must(adapter, metric.better in ("higher", "lower"), "metrics()", "be better 'higher' or 'lower'", metric)
        free = metric.name not in taken_names and not is_resource_use(metric.name)
        must(adapter, free, "metrics()", "have no name of what is measured of every command", metric.name)
    for printed in GARBAGE:
        try:
            found = options.read(printed, b"")
        except TrialFailure as failure:
            must(adapter, "\n" not in str(failure), "read()", "say on one line what is wrong", str(failure))
            continue
        must(adapter, False, "read()", f"raise a TrialFailure of {printed[:20]!r}", found)
