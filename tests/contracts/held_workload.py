"""What is asked of every workload beside what is asked of every plug-in."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from weighbridge.model.command import Completed, Transport
from weighbridge.model.measurement import TrialFailure
from weighbridge.model.options import STORED
from weighbridge.model.study import Role
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.study.validated import option_models

from .held import PACKAGE, must

AT = Endpoint(listen="0.0.0.0", address="192.0.2.7", port=15201, client="192.0.2.8")


def holds_as_workload(workload: Workload, given: Mapping[str, Any]) -> None:
    """Under these options; what depends on an option is held under others too."""
    options = workload.options.model_validate(given)
    transports, roles = workload.transports(options), workload.roles(options)
    inherited = type(workload).roles is Workload.roles
    must(workload, inherited, "roles()", "be left as it is: it follows from transports()")
    if load := workload.load(options):
        must(workload, "server" in roles, "load()", "be '' where there is no server", load)
        _has_bounds(workload, load)
    wrong = [package for package in workload.packages if not PACKAGE.fullmatch(package)]
    must(workload, not wrong, "packages", "name Debian packages", wrong)
    _gives_commands(workload, options, roles, transports)
    for role in roles:
        files = workload.files(role, options, AT)
        elsewhere = [path for path in files if not path.startswith(("/tmp/", "/run/"))]
        must(workload, not elsewhere, "files()", "be below /tmp or /run", elsewhere)
        modes = {workload.file_mode(options, path) for path in files}
        must(workload, modes <= {0o644, 0o755}, "file_mode()", "be 0o644 or 0o755", modes)
    if (openings := workload.openings(options)) is not None:
        must(workload, roles == ("solo",), "openings()", "be None where it has transports: a fresh site has no port")
        counts = openings.sites >= 1 and openings.settle_s >= 0
        must(workload, counts, "openings()", "open at least one site, and wait no negative time", openings)
    _names_its_metrics(workload, options)
    _can_be_given_a_length(workload, options)
    threads = workload.generator_threads(options)
    must(workload, threads >= 1, "generator_threads()", "be 1 or more", threads)
    try:
        result = workload.parse(options, {role: Completed(("x",), 0, b"", b"", 1.0) for role in roles})
    except TrialFailure:
        return
    must(workload, False, "parse()", "raise a TrialFailure where nothing was printed", result)


def _names_its_metrics(workload: Workload, options: Any) -> None:
    metrics = workload.metrics(options)
    names = [metric.name for metric in metrics]
    must(workload, bool(names) and len({*names}) == len(names), "metrics()", "be one or more, each named once", names)
    for metric in metrics:
        named = bool(re.fullmatch(r"[a-z][a-z0-9_]*", metric.name) and metric.unit)
        must(workload, named, "metrics()", "have names such as mean_latency, and units", metric)
        must(workload, metric.better in ("higher", "lower"), "metrics()", "be better 'higher' or 'lower'", metric)
    asked = workload.asked_rate(options)
    must(workload, asked is None or asked.metric in metrics, "asked_rate()", "be of one of its metrics", asked)


def _can_be_given_a_length(workload: Workload, options: Any) -> None:
    """Where it says which is the shortest: it then measures the same, for about so long."""
    length = workload.length(options)
    if length is None:
        return
    longest_s = workload.expected_s(options)
    must(workload, 0 < length.shortest_s < longest_s, "length()", f"be below {longest_s} s", length.shortest_s)
    per_second = length.per_second({metric.name: 2e5 for metric in workload.metrics(options)})
    must(workload, per_second is not None, "length()", "tell a rate from its metrics")
    assert per_second
    nothing = length.per_second({}), length.per_second({metric.name: 0.0 for metric in workload.metrics(options)})
    must(workload, nothing == (None, None), "length()", "tell no rate where nothing was measured", nothing)
    shortest_s = max(length.shortest_s, length.fewest * length.step / per_second)
    shortest_s = length.rounded(shortest_s, shortest_s, per_second)
    for seconds in (shortest_s, 2 * shortest_s):
        made = length.lasting(options, seconds, per_second)
        read = workload.options.model_validate_json(made.model_dump_json(), context={**option_models(), STORED: True})
        must(workload, read == made, "length()", f"name an option that a study may have ({made!r})", read)
        same = all(
            of(made) == of(options)
            for of in (workload.metrics, workload.roles, workload.packages_for, workload.durability)
        )
        must(workload, same, "length()", "change nothing but the length", made)
        argv = [workload.command(workload.roles(each)[-1], each, AT).argv for each in (options, made)]
        must(workload, argv[0] != argv[1], "command()", "tell its program the amount", argv[1])
        lasts_s = length.lasted_s(made, per_second)
        near = math.isclose(lasts_s, seconds, rel_tol=0.05)
        must(workload, near, "length()", f"have it last {seconds} s", lasts_s)


def _has_bounds(workload: Workload, load: str) -> None:
    """Levels that make no sense are told before anything runs, by editors too."""
    schema = workload.options.model_json_schema()["properties"][load]
    numbers = [each for each in schema.get("anyOf", [schema]) if each["type"] != "null"]
    whole = len(numbers) == 1 and numbers[0]["type"] == "integer"
    bounded = whole and numbers[0].get("minimum", 0) >= 1 and 1000 <= numbers[0].get("maximum", 0) <= 10**6
    expected = "be a whole number, at least 1, at most something between 1000 and 10^6 (Field(ge=1, le=10_000))"
    must(workload, bounded, f"options.{load}, its load,", expected, schema)


def _gives_commands(workload: Workload, options: Any, roles: Sequence[Role], transports: Sequence[Transport]) -> None:
    """Argument lists under deadlines: only a server listens, and it outlasts its clients."""
    by_role = {role: workload.command(role, options, AT) for role in roles}
    warm_up = workload.warm_up(options, AT)
    beside_it = (workload.prepare, workload.restore, workload.warm_up, workload.check, workload.finish)
    around = [each(options, AT) for each in beside_it]
    beside = [command for command in around if command is not None]
    listening = [command.argv for command in beside if command.listens]
    must(
        workload, not listening, "prepare(), restore(), warm_up(), check(), finish()", "have no 'listens'", listening
    )
    for command in (*by_role.values(), *beside):
        argv = command.argv
        strings = type(argv) is tuple and all(type(argument) is str for argument in argv)
        must(workload, strings, "command()", "have a tuple of strings as its argv", argv)
        must(workload, "/" not in argv[0], "command()", "name its program without a folder: PATH finds it", argv[0])
        must(workload, math.isfinite(command.deadline_s), "command()", "have a deadline", command.deadline_s)
    expected_s, deadline_s = workload.expected_s(options), by_role[roles[-1]].deadline_s
    within = f"be above 0 and below the deadline_s of its measured command, {deadline_s}"
    must(workload, 0 < expected_s < deadline_s, "expected_s()", within, expected_s)
    for role, command in by_role.items():
        only = bool(command.listens) == (role == "server")
        must(workload, only, "command()", f"have 'listens' for the server and nobody else; {role}", command.listens)
        served = all(transport in transports and port == AT.port for transport, port in command.listens)
        must(workload, served, "command()", f"listen on at.port ({AT.port}), by one of {transports}", command.listens)
    if "server" in by_role:
        clients_s = by_role["client"].deadline_s + (warm_up.deadline_s if warm_up else 0.0)
        server_s = by_role["server"].deadline_s
        longer = f"give the server a longer deadline_s than its clients need, {clients_s}"
        must(workload, server_s > clients_s, "command()", longer, server_s)
