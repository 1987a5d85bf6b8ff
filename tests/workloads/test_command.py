"""A command of the study's own: its words, what is read from it, and what is said where it fails."""

import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sentences import assert_sentence, raises_sentence
from weighbridge.model.command import Completed, Usage
from weighbridge.model.measurement import ProgramFailed, ServerNotReady, Unparseable
from weighbridge.model.options import STORED
from weighbridge.workloads.command import PLUGIN, CommandOptions
from weighbridge.workloads.command.metrics import read_metrics

from .captured import AT

RPS = {"json": "$.rps", "unit": "1/s", "better": "higher"}
PAIR = {"server": "serve {listen} {port}", "client": "ask {address}:{port}"}


def options(**given: Any) -> CommandOptions:
    return CommandOptions.model_validate({"run": "true"} | given)


def pair(**given: Any) -> CommandOptions:
    return CommandOptions.model_validate(PAIR | given)


def problem(**given: Any) -> str:
    """The one sentence with which these options are refused."""
    with pytest.raises(ValidationError) as refused:
        CommandOptions.model_validate(given)
    (error,) = refused.value.errors()
    return str(error["msg"]).removeprefix("Value error, ")


def argv(**given: Any) -> tuple[str, ...]:
    return PLUGIN.command("solo", CommandOptions.model_validate(given), AT).argv


def ended(stdout: bytes = b"", stderr: bytes = b"", code: int = 0, usage: Usage | None = None) -> Completed:
    return Completed(("prog",), code, stdout, stderr, 1.5, usage=usage)


def values(chosen: CommandOptions, done: Completed) -> dict[str, float]:
    role = PLUGIN.roles(chosen)[-1]
    return {each.metric.name: each.value for each in PLUGIN.parse(chosen, {role: done}).measurements}


def failure(chosen: CommandOptions, done: Completed) -> str:
    with pytest.raises((ProgramFailed, Unparseable)) as failed:
        values(chosen, done)
    return str(failed.value)


def test_a_server_is_ready_by_its_port_or_by_a_line_too():
    assert PLUGIN.command("server", pair(), AT).says == ""
    assert PLUGIN.command("server", pair(ready="port"), AT).says == ""
    assert PLUGIN.command("server", pair(ready={"line": "listening on"}), AT).says == "listening on"
    assert_sentence(problem(**PAIR, ready={"line": "("}))
    kept = pair(ready={"line": "up"})
    assert CommandOptions.model_validate(kept.model_dump(mode="json"), context={STORED: True}) == kept


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("python3 fib.py 30", ("python3", "fib.py", "30")),
        (["python3", "fib.py", 30], ("python3", "fib.py", "30")),
        ("awk '{{print $1}}' a", ("awk", "{print $1}", "a")),
        (["echo", "{{", "}}", "}"], ("echo", "{", "}", "}")),
        ("a 'b c' \"d e\" f\\ g", ("a", "b c", "d e", "f g")),
    ],
)
def test_a_text_is_split_as_a_shell_would_which_none_runs(run: Any, words: tuple[str, ...]):
    assert argv(run=run) == words


@given(value=st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=40))
def test_a_value_is_never_more_than_its_word(value: str):
    assert argv(run="prog --size={n} last", parameters={"n": value}) == ("prog", f"--size={value}", "last")


@given(value=st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=40))
def test_a_shell_gets_a_value_as_one_word(value: str):
    import shlex

    shell, flag, text = argv(run="prog {n} | wc", shell=True, parameters={"n": value})
    assert (shell, flag) == ("/bin/sh", "-c")
    assert shlex.split(text.removeprefix("prog ").removesuffix(" | wc")) == [value]


def test_where_the_server_is_goes_into_both():
    server, client = (PLUGIN.command(role, pair(), AT) for role in ("server", "client"))
    assert (server.argv, client.argv) == (("serve", "0.0.0.0", "15201"), ("ask", "192.0.2.7:15201"))
    assert server.listens == (("tcp", 15201),)
    udp = PLUGIN.command("server", pair(protocol="udp", server="serve {data_port}"), AT)
    assert (udp.listens, udp.argv) == ((("udp", 15201),), ("serve", "15202"))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"server": "a"},
        {"run": "a"} | PAIR,
        {"run": ""},
        {"run": []},
        {"run": "'"},
        {"run": ["a\0b"]},
        {"run": ["a"], "shell": True},
        {"run": "a {n}"},
        {"run": "a {size} {sice}", "parameters": {"size": 1}},
        {"run": "a {port}"},
        {"run": "a", "check": "grep {x}"},
        {"run": "a", "parameters": {"n": 1}},
        {"run": "a {port}", "parameters": {"port": 1}},
        {"run": "a {shell}", "parameters": {"shell": 1}},
        {"run": "a", "metrics": {"time": RPS}},
        {"run": "a", "metrics": {"cpu_usage": RPS}},
        {"run": "a", "deadline": "1s"},
        {"run": "a", "files": {"/etc/passwd": "/etc/hostname"}},
        {"run": "a", "files": {"/tmp/../etc/x": "/etc/hostname"}},
        {"run": "a", "files": {"/tmp/x": "/nonexistent"}},
        {"server": "a", "client": "b {address}:{port}"},
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_sentence(given: dict[str, Any]):
    assert_sentence(problem(**given))


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        ({}, "needs either 'json: PATH' or 'regex: EXPRESSION'"),
        ({"json": "$.a", "regex": "(a)"}, "needs either 'json: PATH' or 'regex: EXPRESSION'"),
        ({"regex": "a"}, "'a' has 0 groups: put parentheses around the number, and nothing else"),
        ({"regex": "(a)(b)"}, "'(a)(b)' has 2 groups: put parentheses around the number, and nothing else"),
        ({"regex": "("}, "the regular expression '(' has an error: a closing parenthesis is missing"),
    ],
)
def test_a_metric_that_cannot_be_found_is_refused(metric: dict[str, Any], told: str):
    assert problem(run="a", metrics={"rps": {"unit": "s", "better": "lower"} | metric}) == told


def test_a_path_that_is_none_is_refused():
    told = problem(run="a", metrics={"rps": RPS | {"json": "$.a["}})
    assert told.startswith("'$.a[' is not a JSONPath (RFC 9535): ")


def test_time_is_the_headline_unless_the_output_has_one():
    assert [metric.name for metric in PLUGIN.metrics(options())] == [
        "time", "cpu_user", "cpu_system", "peak_memory", "context_switches", "page_faults",
    ]  # fmt: skip
    assert [metric.name for metric in PLUGIN.metrics(options(metrics={"rps": RPS}))][:2] == ["rps", "time"]


def test_what_it_used_is_measured_and_left_out_where_nobody_tells():
    used = Usage(0.5, 0.25, 3 * 2**20, 7, 4, 90, 2)
    assert values(options(), ended(usage=used)) == {
        "time": 1.5, "cpu_user": 0.5, "cpu_system": 0.25, "peak_memory": 3.0, "context_switches": 11.0,
        "page_faults": 92.0,
    }  # fmt: skip
    assert values(options(), ended()) == {"time": 1.5}


def test_metrics_are_read_from_the_stream_that_is_named():
    lines = {"regex": r"^took (\S+) ms$", "unit": "ms", "better": "lower", "from": "stderr"}
    chosen = options(metrics={"rps": RPS, "took": lines})
    assert values(chosen, ended(b'{"rps": 12}', b"began\ntook 1.25e1 ms\n")) == {"rps": 12, "took": 12.5, "time": 1.5}


@pytest.mark.parametrize(
    ("metric", "printed", "told"),
    [
        (RPS, b"", "metric m: standard output is empty, but should be JSON"),
        (
            RPS, b"{",
            "metric m: standard output is not JSON (Expecting property name enclosed in double quotes:"
            " line 1 column 2 (char 1))",
        ),
        (RPS, b'{"r": 1}', "metric m: $.rps finds nothing in standard output"),
        (RPS, b'{"rps": "12"}', 'metric m: $.rps in standard output is "12", not a number'),
        (RPS, b'{"rps": true}', "metric m: $.rps in standard output is true, not a number"),
        (RPS, b'{"rps": null}', "metric m: $.rps in standard output is null, not a number"),
        (RPS, b'{"rps": NaN}', "metric m: $.rps in standard output is nan, which is not a valid measurement"),
        (RPS, b'{"rps": 1e999}', "metric m: $.rps in standard output is inf, which is not a valid measurement"),
        (
            RPS | {"json": "$[*].rps"}, b'[{"rps": 1}, {"rps": 2}]',
            "metric m: $[*].rps finds 2 values in standard output, but must find exactly one",
        ),
        ({"regex": "= (.*)"}, b"a = b", "metric m: /= (.*)/ in standard output gives 'b', not a number"),
        (
            {"regex": "= (.*)"}, b"a = 1\nb = 2",
            "metric m: /= (.*)/ finds 2 values in standard output, but must find exactly one",
        ),
        ({"regex": "= (.*)"}, b"nothing", "metric m: /= (.*)/ finds nothing in standard output"),
        ({"regex": "= (x)?"}, b"a = ", "metric m: /= (x)?/ in standard output gives '', not a number"),
        ({"regex": "= (.*)"}, b"a = nan", "metric m: /= (.*)/ in standard output gives 'nan', not a number"),
        (
            {"regex": "= (.*)"}, b"a = 9e999",
            "metric m: /= (.*)/ in standard output is inf, which is not a valid measurement",
        ),
    ],
)  # fmt: skip
def test_a_metric_without_a_number_is_never_zero(metric: dict[str, Any], printed: bytes, told: str):
    chosen = options(metrics={"m": {"unit": "s", "better": "lower"} | metric})
    assert failure(chosen, ended(printed)) == told


@pytest.mark.parametrize(
    ("metric", "printed"),
    [
        ({"regex": r"(?:a|b|ab)*=(\d)"}, b"ab" * 40 + b"=x"),
        ({"json": "$[?search(@.n, '^([0-9]|9|99)*s[a-z]$')].v"}, b'[{"n": "' + b"9" * 60 + b's9", "v": 1}]'),
        ({"json": "$[?match(@.n, '([0-9]|9|99)*s[a-z]')].v"}, b'[{"n": "' + b"9" * 60 + b's9", "v": 1}]'),
    ],
)
def test_an_expression_that_never_ends_is_a_failed_trial(metric, printed, monkeypatch):
    monkeypatch.setattr("weighbridge.workloads.command.expressions.MATCHING_S", 0.2)
    chosen = options(metrics={"m": {"unit": "s", "better": "lower"} | metric})
    assert_sentence(failure(chosen, ended(printed)))


def test_what_an_expression_gives_is_what_python_s_own_gives():
    for expression, printed in (
        (r"^total:\s+([\d.]+)\b", "x\ntotal: 12.5\n"), (r"(?i)RPS=([0-9]+)$", "rps=7\nrps"),
        (r"(?:took|in) (\d+(?:e-?\d+)?) ?ms", "took 1e3ms"),
    ):  # fmt: skip
        chosen = options(metrics={"m": {"unit": "s", "better": "lower", "regex": expression}})
        (own,) = re.finditer(expression, printed, re.MULTILINE)
        assert read_metrics(chosen.metrics, ended(printed.encode()))[0].value == float(own[1])


ADDRESS, READ_ONLY, NO_TTY = (os.strerror(code) for code in (errno.EADDRINUSE, errno.EROFS, errno.ENOTTY))


@pytest.mark.parametrize(
    ("stderr", "code", "told"),
    [
        (b"no such luck\n", 3, "prog exited with code 3: no such luck"),
        (b"", -11, "prog was killed by signal 11: some output"),
        (
            f"cp: x: {READ_ONLY}\n".encode(), 1,
            "prog exited with code 1: it writes to a read-only place: write to /tmp or /run:"
            f" cp: x: {READ_ONLY}",
        ),
        (
            f"stty: {NO_TTY}\n".encode(), 1,
            f"prog exited with code 1: it needs a terminal, which a site does not have: stty: {NO_TTY}",
        ),
        (
            f"bind: {ADDRESS}\n".encode(), 1,
            f"prog exited with code 1: its port is in use by another program: bind: {ADDRESS}",
        ),
    ],
)  # fmt: skip
def test_a_program_that_failed_is_told_with_what_is_known_of_it(stderr: bytes, code: int, told: str):
    assert failure(options(), ended(b"some output\n", stderr, code)) == told


def test_a_word_of_a_terminal_is_no_reason():
    said = failure(options(), ended(b"", b"the terminal station is closed\n", 1))
    assert said == "prog exited with code 1: the terminal station is closed"


def test_what_a_shell_did_not_find_is_named():
    done = ended(b"", b"/bin/sh: 1: fibb: not found\n", 127)
    assert (
        failure(options(shell=True), done)
        == "the program fibb is not in the root filesystem: add it, or check its name"
    )
    assert failure(options(), done) == "prog exited with code 127: /bin/sh: 1: fibb: not found"


def test_what_is_run_around_it_has_its_values_too():
    chosen = pair(
        setup="mk {n}",
        prepare="sync {n}",
        check="grep {n}",
        cleanup="rm {n}",
        warm_up=True,
        parameters={"n": 5},
        deadline="10s",
    )
    beside = (PLUGIN.prepare, PLUGIN.restore, PLUGIN.check, PLUGIN.finish, PLUGIN.warm_up)
    around = [each(chosen, AT) for each in beside]
    assert [each.argv for each in around if each] == [
        ("mk", "5"), ("sync", "5"), ("grep", "5"), ("rm", "5"), ("ask", "192.0.2.7:15201"),
    ]  # fmt: skip
    assert {each.deadline_s for each in around if each} == {10.0}
    assert [each(options(), AT) for each in beside] == [None] * len(beside)


def test_files_are_read_anew_and_a_program_stays_one(tmp_path: Path):
    local, program = tmp_path / "data", tmp_path / "prog"
    for file, mode in ((local, 0o644), (program, 0o755)):
        file.write_bytes(b"one")
        file.chmod(mode)
    chosen = options(files={"/tmp/data": str(local), "/run/prog": str(program)})
    assert PLUGIN.files("solo", chosen, AT) == {"/tmp/data": b"one", "/run/prog": b"one"}
    assert [PLUGIN.file_mode(chosen, path) for path in ("/tmp/data", "/run/prog")] == [0o644, 0o755]
    local.write_bytes(b"two")
    assert PLUGIN.files("solo", chosen, AT)["/tmp/data"] == b"two"
    local.unlink()
    with raises_sentence(ServerNotReady):
        PLUGIN.files("solo", chosen, AT)


def test_packages_are_those_of_the_study():
    assert PLUGIN.userland(options(packages=["jq", "curl"])).packages == ("curl", "jq")
    assert PLUGIN.userland(options()).packages == ()
