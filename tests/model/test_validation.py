"""Errors of pydantic become sentences that use none of pydantic's own words."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, Json, ValidationError, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_core._pydantic_core import list_all_errors

from sentences import ROOT
from weighbridge import registry
from weighbridge.features.fleets.providers import providers
from weighbridge.model.options import Name, Options
from weighbridge.model.quantity import Duration, PacketSize, Rate, Share, Size
from weighbridge.model.study import StudyFile
from weighbridge.model.validation import first_problem, problem_of, problems_of, with_allowed
from weighbridge.study.validated import option_models

PYDANTIC = re.compile(
    r"Input should|(String|Data|Keys|items?|scheme) should|Extra inputs|Field required|Value error|Assertion failed|"
    r"[Uu]nable to parse|valid (integer|string|number|boolean|dictionary|list|tuple)|after validation"
)
GOLDEN = sorted((ROOT / "tests").glob("**/sentences/*.txt"))
EVERY_ERROR = {error["type"]: error for error in list_all_errors()}


class Inner(Options):
    number: Annotated[int, Field(ge=2, le=9, strict=True)] = 2
    few: Annotated[int, Field(ge=1)] = 1
    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    rate: float = 1
    kind: Literal["blue", "green"] = "blue"
    document: Json[list[str]] = "[]"
    text: str = ""
    code: Annotated[str, Field(pattern="^a$")] = "a"
    name: Name = "a"
    names: Annotated[tuple[Name, ...], Field(min_length=1, max_length=2)] = ("a",)
    short: Annotated[str, Field(min_length=1, max_length=3)] = "a"
    workers: Literal["auto"] | Annotated[int, Field(ge=1)] = "auto"
    memory: Annotated[Size, Field(ge=512 * 2**20)] | None = None
    duration: Annotated[Duration, Field(ge=0.2, le=86400)] = 1
    at_rate: Annotated[Rate, Field(gt=0)] | None = None
    percentile: Annotated[Share, Field(ge=0.5, le=0.9999)] = 0.5
    packet: PacketSize = 100

    @field_validator("text")
    @classmethod
    def _plain(cls, text: str) -> str:
        if text == "bad":
            raise ValueError("'bad' is not a text")
        if text == "worse":
            raise PydanticCustomError("worse", "is not a text")
        return text


class Outer(Options):
    inner: dict[str, Inner]


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ({"number": 1}, "inner.x.number: must be from 2 to 9, not 1"),
        ({"number": "7"}, "inner.x.number: must be a whole number from 2 to 9, not '7'"),
        ({"number": True}, "inner.x.number: must be a whole number from 2 to 9, not true"),
        ({"few": 0}, "inner.x.few: must be at least 1, not 0"),
        ({"few": "few"}, "inner.x.few: must be a whole number of at least 1, not 'few'"),
        ({"few": 1.5}, "inner.x.few: must be a whole number of at least 1, not 1.5"),
        ({"few": -(10**5000)}, "inner.x.few: must be at least 1, not a very long number"),
        ({"share": 0}, "inner.x.share: must be more than 0 and less than 1, not 0"),
        ({"share": float("nan")}, "inner.x.share: must be a finite number, not nan"),
        ({"rate": [7]}, "inner.x.rate: must be a number, not a list"),
        ({"rate": {"a": 7}}, "inner.x.rate: must be a number, not a mapping"),
        ({"kind": "gren"}, "inner.x.kind: must be 'blue' or 'green', not 'gren'. Did you mean 'green'?"),
        ({"document": "{"}, "inner.x.document: must be valid JSON"),
        ({"document": "[1]"}, "inner.x.document.0: must be text, not 1"),
        ({"text": None}, "inner.x.text: must be text, not empty"),
        ({"code": "x"}, "inner.x.code: 'x' does not match the pattern ^a$"),
        (
            {"name": "my cpu"},
            "inner.x.name: 'my cpu' is not a name: a name starts with a letter and has at most 40 letters, digits, "
            "'-', '_' and '.'",
        ),
        ({"names": []}, "inner.x.names: must have at least 1 entry, not 0"),
        ({"names": list("abc")}, "inner.x.names: must have at most 2 entries, not 3"),
        ({"names": "a"}, "inner.x.names: must be a list, not 'a'"),
        ({"short": "abcd"}, "inner.x.short: must have at most 3 characters, not 4"),
        ({"workers": "0"}, "inner.x.workers: must be 'auto' or a whole number of at least 1, not '0'"),
        ({"memory": "256MiB"}, "inner.x.memory: must be at least 512 MiB, not '256MiB'"),
        ({"duration": "0.1s"}, "inner.x.duration: must be from 200 ms to 24 h, not '0.1s'"),
        ({"at_rate": "0bit/s"}, "inner.x.at_rate: must be more than 0, not '0bit/s'"),
        ({"percentile": "100%"}, "inner.x.percentile: must be from 50% to 99.99%, not '100%'"),
        ({"percentile": 99}, "inner.x.percentile: write a percentage, such as 2%"),
        ({"memory": "1GiBs"}, "inner.x.memory: unknown unit 'GiBs' in '1GiBs'. Did you mean '1GiB'?"),
        ({"text": "bad"}, "inner.x.text: 'bad' is not a text"),
        ({"text": "worse"}, "inner.x.text: is not a text"),
        ({"other": 1}, "inner.x: unknown key 'other'"),
        (7, "inner.x: must be 'key: value' pairs, not 7"),
    ],
)
def test_a_problem_has_its_place_and_what_is_allowed(inner: Any, expected: str):
    with pytest.raises(ValidationError) as error:
        Outer.model_validate({"inner": {"x": inner}})
    assert problem_of(error.value) == expected


def test_a_missing_key_is_named():
    with pytest.raises(ValidationError) as error:
        Outer.model_validate({})
    assert first_problem(error.value) == (("inner",), "'inner' is missing")
    assert problem_of(error.value) == "'inner' is missing"


def test_every_problem_is_listed():
    with pytest.raises(ValidationError) as error:
        Inner.model_validate({"few": 0, "rate": "x", "other": 1})
    assert problems_of(error.value) == [
        "few: must be at least 1, not 0",
        "rate: must be a number, not 'x'",
        "unknown key 'other'",
    ]


def test_a_long_key_with_terminal_codes_is_shortened():
    with pytest.raises(ValidationError) as error:
        Outer.model_validate({"inner": {"\x1b[2J" + "x" * 5000: 1}})
    place, problem = first_problem(error.value)
    assert problem == "must be 'key: value' pairs, not 1"
    assert len(str(place[1])) == 60 and str(place[1]).isprintable()


@pytest.mark.parametrize("kind", EVERY_ERROR)
def test_no_error_of_pydantic_is_shown_in_its_own_words(kind: str):
    context = {**(EVERY_ERROR[kind].get("example_context") or {})}
    if "error" in context:
        context["error"] = ValueError("our sentence") if kind in ("value_error", "assertion_error") else "x"
    context |= {key: 1 for key, value in context.items() if value is None}
    context |= {key: "'a' or 'b'" for key in ("expected",) if key in context}
    details = InitErrorDetails(type=kind, loc=("key",), input="wrong", ctx=context)
    error = ValidationError.from_exception_data("Options", [details])
    for each in (error, with_allowed(Inner, {"key": "wrong"}, error)):
        for shown in (problem_of(each), *problems_of(each), first_problem(each)[1]):
            assert not PYDANTIC.search(shown)
            assert error.errors()[0]["msg"] not in shown


CANARY = "hunter2"


class Places(Options):
    environment: dict[str, str] = Field({})
    env: dict[Annotated[str, Field(pattern="^[A-Z_]+$")], str] = Field({})
    server_env: dict[str, str] = Field({})
    variables: dict[str, str] = Field({})
    prometheus: Inner | None = None
    url: str = ""
    command: tuple[str, ...] = ()
    names: dict[str, int] = Field({})
    number: int = 1
    duration: Duration = 1
    kind: Literal["blue", "green"] = "blue"
    name: Name = "a"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"environment": [f"POSTGRES_PASSWORD={CANARY}"]}, "environment: must be 'key: value' pairs, not a list"),
        ({"environment": f"POSTGRES_PASSWORD={CANARY}"}, "environment: must be 'key: value' pairs"),
        ({"environment": {"A": [CANARY]}}, "environment.A: must be text, not a list"),
        ({"environment": {"A": {CANARY: 1}}}, "environment.A: must be text, not a mapping"),
        ({"environment": {"A": 12345678}}, "environment.A: must be text"),
        ({"environment": {"A": None}}, "environment.A: must be text, not empty"),
        ({"environment": {f"PASSWORD={CANARY}": 1}}, "environment.PASSWORD=...: must be text"),
        ({"env": {f"A {CANARY}": "a"}}, "env: must match the pattern ^[A-Z_]+$"),
        ({"server_env": [f"PW={CANARY}"]}, "server_env: must be 'key: value' pairs, not a list"),
        ({"variables": f"A={CANARY}"}, "variables: must be 'key: value' pairs"),
        ({"prometheus": f"http://u:{CANARY}@h"}, "prometheus: must be 'key: value' pairs"),
        ({"url": [f"http://u:{CANARY}@h"]}, "url: must be text, not a list"),
        ({"command": {"PASSWORD": CANARY}}, "command: must be a list, not a mapping"),
        ({"command": f"serve --password={CANARY}"}, "command: must be a list"),
        ({"command": f"serve --pw {CANARY}"}, "command: must be a list"),
        ({"names": {"API_TOKEN": CANARY}}, "names.API_TOKEN: must be a whole number"),
        ({"number": f"http://u:{CANARY}@h"}, "number: must be a whole number"),
        ({"number": f"https://{CANARY}@h"}, "number: must be a whole number"),
        ({"number": f"http://u:a/{CANARY}@h"}, "number: must be a whole number"),
        ({"number": f"u:{CANARY}@h"}, "number: must be a whole number"),
        ({"number": "x" * 70 + f"://u:{CANARY}@h"}, "number: must be a whole number"),
        ({"kind": f"TOKEN={CANARY}"}, "kind: must be 'blue' or 'green'"),
        ({"name": f"http://u:{CANARY}@h"}, "name: must be a name: a name starts with a letter and has at most 40 "
         "letters, digits, '-', '_' and '.'"),
        ({"duration": f"PW={CANARY}"}, "duration: '...' is not a time: write a number with a unit"),
        ({"duration": "5passwd"}, "duration: unknown unit '...' in '...'"),
        ({f"PASSWORD={CANARY}": 1}, "unknown key 'PASSWORD=...'"),
        ({f"http://u:{CANARY}@h": 1}, "unknown key '...'"),
        ({"number": "plain"}, "number: must be a whole number, not 'plain'"),
    ],
)  # fmt: skip
def test_no_message_has_a_value_that_can_be_a_secret(written: Any, expected: str):
    with pytest.raises(ValidationError) as error:
        Places.model_validate(written)
    location, problem = first_problem(error.value)
    for told in (problem, *map(str, location), problem_of(error.value), *problems_of(error.value)):
        assert CANARY not in told and "12345678" not in told
    assert problem_of(error.value).startswith(expected)


def test_a_value_that_contains_itself_or_a_very_long_number_ends_no_message():
    endless: dict[str, Any] = {"kind": {"PASSWORD": 10**5000, "TOKEN": CANARY}}
    endless |= {"again": [endless, endless], "PASSWORD": 10**5000}
    with pytest.raises(ValidationError) as error:
        StudyFile.model_validate({"userland": endless, "hosts": {"a": endless}}, context=option_models())
    assert CANARY not in "".join(problems_of(error.value))


def test_a_damaged_document_is_not_shown():
    with pytest.raises(ValidationError) as error:
        Places.model_validate_json(f'{{"environment": {{"A": "{CANARY}"}}')
    assert problem_of(error.value) == "must be valid JSON"


WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**12,
    float("nan"),
    "",
    "no such",
    "9" * 5000,
    [],
    [[]],
    {},
    {"a": {}},
)
MODELS = {
    f"{section}-{kind}": plugin.options
    for section, plugins in (
        *((name, getattr(registry, name)) for name in ("adapters", "environments", "hosts")),
        ("providers", providers),
        *((name, getattr(registry, name)) for name in ("storage", "userlands", "workloads")),
    )
    for kind, plugin in plugins().items()
} | {"study": StudyFile}


@pytest.mark.parametrize("model", MODELS)
def test_no_wrong_value_of_any_option_is_answered_in_pydantics_words(model: str):
    options = MODELS[model]
    for name, field in options.model_fields.items():
        for value in WRONG:
            try:
                options.model_validate({field.alias or name: value})
            except ValidationError as error:
                for problem in problems_of(error):
                    assert not PYDANTIC.search(problem), (name, value)
                    assert "another value" not in problem, (name, value)


SECRETS = (f"PASSWORD={CANARY}", f"http://u:{CANARY}@h")
INSIDE: tuple[Any, ...] = (
    *([text] for text in (CANARY, *SECRETS)),
    *([[text]] for text in (CANARY, *SECRETS)),
    *([{"a": text}] for text in (CANARY, *SECRETS)),
    *({"a": text} for text in (CANARY, *SECRETS)),
    *({"a": [text]} for text in (CANARY, *SECRETS)),
    *({"a": {"b": text}} for text in (CANARY, *SECRETS)),
    *({"kind": {"a": text}} for text in (CANARY, *SECRETS)),
    *({text: None} for text in SECRETS),
)


@pytest.mark.parametrize("model", MODELS)
def test_no_message_about_any_option_shows_what_a_list_or_a_mapping_has(model: str):
    """A wrong word of a list of words is shown, unless it can be a secret."""
    options = MODELS[model]
    context = option_models()
    for name, field in options.model_fields.items():
        for value in INSIDE:
            try:
                options.model_validate({field.alias or name: value}, context=context)
            except ValidationError as error:
                first_is_a_word = error.errors()[0]["input"] == CANARY
                for item, told in zip(error.errors(), problems_of(error), strict=True):
                    assert item["input"] == CANARY or CANARY not in told, (name, value)
                assert first_is_a_word or CANARY not in str(first_problem(error)), (name, value)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: str(path.relative_to(ROOT / "tests")))
def test_no_golden_sentence_has_pydantics_words(path: Path):
    assert [line for line in path.read_text().splitlines() if PYDANTIC.search(line)] == []
