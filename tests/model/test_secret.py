"""References to secrets in texts of studies, and values that older versions stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from weighbridge.model.secret import (
    SecretName,
    hidden_options,
    hidden_text,
    looks_secret,
    parts_of,
    reference,
    secret_name,
    secrets_in,
    variable_of,
    with_values,
)

STUDY = """\
# canary-free comment
study: old
userland:
  kind: host
  env: {PATH: /usr/bin, TOKEN: 'canary 1', NUMBER: 7, "quoted": "canary 2"}
environments:
  env: {kind: native}
  own: {kind: docker, variables: {A: canary 3}, workloads: {w: {server_env: {B: canary 4}}}}
companions:
  db:
    image: db
    environment: &shared
      POSTGRES_PASSWORD: &pw |
        canary 5
        canary 6
      OTHER: *pw
      EMPTY:
  second: {image: db, environment: *shared}
workloads:
  w:
    kind: command
    server_env:
      B: >-
        canary 7
    port: 1
"""


def test_an_old_text_is_shown_without_its_values_and_otherwise_as_it_was():
    shown = hidden_text(STUDY)
    before, after = (YAML(typ="safe").load(text) for text in (STUDY, shown))
    assert "canary 1" not in shown and not [n for n in range(2, 8) if f"canary {n}" in shown]
    assert after["userland"]["env"] == {
        "PATH": "/usr/bin", "TOKEN": "(value not shown)", "NUMBER": "(value not shown)",
        "quoted": "(value not shown)",
    }  # fmt: skip
    assert {*after["companions"]["second"]["environment"]} == {"POSTGRES_PASSWORD", "OTHER", "EMPTY"}
    assert after["environments"]["env"] == {"kind": "native"} and after["workloads"]["w"]["port"] == 1
    assert shown.startswith("# canary-free comment\n") and before["study"] == after["study"]


@pytest.mark.parametrize("text", ["", "- 1", "userland: 3", "workloads: {w: 3}"])
def test_a_text_without_variables_is_shown_as_it_is(text: str):
    assert hidden_text(text) == text


@pytest.mark.parametrize("text", ["{", "a: [", "\0", "a: *b", "userland: {env: {A: b, A: c}}"])
def test_a_text_that_cannot_be_read_is_not_shown(text: str):
    assert hidden_text(text) == "(value not shown)"


def test_options_of_an_old_run_differ_where_their_values_did():
    one, same, other = ({"server_env": {"A": value, "PATH": "/bin"}, "port": 1} for value in ("x", "x", "canary"))
    hidden = [hidden_options(each) for each in (one, same, other)]
    assert hidden[0] == hidden[1] != hidden[2] and "canary" not in str(hidden)
    assert hidden[0]["server_env"]["PATH"] == "/bin" and hidden[0]["port"] == 1


@given(
    st.text(min_size=1, max_size=30),
    st.text(min_size=1, max_size=30),
    st.text(max_size=30).map(lambda t: t.replace("$", "")),
)
def test_any_name_makes_a_reference(owner: str, variable: str, around: str):
    try:
        name = secret_name(owner, variable)
    except UnicodeEncodeError:
        return
    text = f"{around}{reference(name)}{around}"
    assert secrets_in(text) == (name,)
    assert with_values(text, lambda _: "v") == f"{around}v{around}"
    assert [part for part in parts_of(text) if isinstance(part, tuple)] == [(name,)]
    assert variable_of(name).isidentifier() or variable_of(name)[:1].isdigit()


def test_words_of_a_command_have_their_braces_twice():
    assert secrets_in("run: --pass=${{secret:PW}} ${secret:db.X} ${PW} $secret:Y") == ("PW", "db.X")
    assert variable_of(SecretName("db.X")) == "X"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("POSTGRES_PASSWORD", "x", True), ("PGPASSWORD", "x", True), ("MYSQL_PWD", "x", True), ("API_KEY", "x", True),
        ("apikey", "x", True), ("GITHUB_TOKEN", "x", True), ("DB_PASS", "x", True), ("clientSecret", "x", True),
        ("AWS_ACCESS_KEY_ID", "x", True), ("DATABASE_URL", "postgres://app:x@db/shop", True),
        ("DATABASE_URL", "postgres://db/shop", False), ("POSTGRES_PASSWORD_FILE", "/run/x", False),
        ("PASSWORD", "", False), ("OMP_NUM_THREADS", "4", False), ("BYPASS", "1", False),
        ("COMPASS", "1", False), ("KEYBOARD", "us", False), ("MONKEY", "1", False), ("REDIS", "redis", False),
        ("SSHPASS", "x", True), ("DBPASS", "x", True), ("BASIC_AUTH", "x", True), ("AUTHOR", "x", False),
        ("JWT", "x", True), ("ERLANG_COOKIE", "x", True), ("SENTRY_DSN", "x", True), ("AWS_CREDENTIALS", "x", True),
        ("PRIVATE", "x", True), ("REPOSITORY", "https://TOKEN@host/x", True), ("DB", "app:pw@tcp(db)/x", True),
        ("IMAGE", "registry:5000/x@sha256:0", False), ("URL", "https://host/x", False),
    ],
)  # fmt: skip
def test_what_looks_secret(name: str, value: str, secret: bool):
    assert looks_secret(name, value) is secret
