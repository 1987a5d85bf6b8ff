"""What pydantic finds wrong is told in words of our own."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, Json, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from weighbridge.model.validation import first_problem, problem_of


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: Annotated[int, Field(ge=2, le=9, strict=True)] = 2
    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    kind: Literal["a", "b"] = "a"
    document: Json[list[str]] = "[]"
    text: str = ""
    code: Annotated[str, Field(pattern="^a$")] = "a"

    @field_validator("text")
    @classmethod
    def _plain(cls, text: str) -> str:
        if text == "bad":
            raise ValueError("'bad' is no text")
        if text == "worse":
            raise PydanticCustomError("worse", "no text that there can be")
        return text


class Outer(BaseModel):
    inner: dict[str, Inner]


@pytest.mark.parametrize(
    ("inner", "told"),
    [
        ({"number": 1}, "inner.x.number: expected at least 2"),
        ({"number": 10}, "inner.x.number: expected at most 9"),
        ({"number": "7"}, "inner.x.number: expected a whole number"),
        ({"share": 0}, "inner.x.share: expected more than 0"),
        ({"share": 1}, "inner.x.share: expected less than 1"),
        ({"share": float("nan")}, "inner.x.share: expected a finite number"),
        ({"share": []}, "inner.x.share: expected a number"),
        ({"kind": "c"}, "inner.x.kind: expected 'a' or 'b'"),
        ({"document": "{"}, "inner.x.document: expected JSON"),
        ({"document": "[1]"}, "inner.x.document.0: expected text"),
        ({"text": None}, "inner.x.text: expected text"),
        ({"code": "x"}, "inner.x.code: its value is not allowed"),
        ({"text": "bad"}, "inner.x.text: 'bad' is no text"),
        ({"text": "worse"}, "inner.x.text: no text that there can be"),
        ({"other": 1}, "inner.x.other: it is unknown"),
        (7, "inner.x: expected an object"),
    ],
)
def test_a_problem_is_told_with_its_place(inner: Any, told: str):
    with pytest.raises(ValidationError) as error:
        Outer.model_validate({"inner": {"x": inner}})
    assert problem_of(error.value) == told


def test_what_is_missing_is_told():
    with pytest.raises(ValidationError) as error:
        Outer.model_validate({})
    assert first_problem(error.value) == (("inner",), "it is missing")


def test_a_long_key_with_orders_for_a_terminal_is_shortened():
    with pytest.raises(ValidationError) as error:
        Outer.model_validate({"inner": {"\x1b[2J" + "x" * 5000: 1}})
    place, problem = first_problem(error.value)
    assert problem == "expected an object"
    assert len(str(place[1])) == 60 and str(place[1]).isprintable()
