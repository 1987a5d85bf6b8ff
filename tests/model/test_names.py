"""Names that become paths hold nothing else, whoever makes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from weighbridge.model.names import GroupName, RunId, SafeName
from weighbridge.model.options import ArmName

RUN = RunId("0123456789ab")


@pytest.mark.parametrize(
    "text", ["", "..", "../..", "/srv/data", "0123456789aB", "0123456789ab\n", "0123456789abc", "٠" * 12]
)
def test_only_twelve_hexadecimal_digits_are_a_run_id(text):
    assert not RunId.matches(text)
    with pytest.raises(ValueError):
        RunId(text)
    with pytest.raises(ValidationError):
        TypeAdapter(RunId).validate_python(text)


def test_a_new_run_id_is_one():
    assert RunId(RunId.new()) != RunId.new()
    assert type(TypeAdapter(RunId).validate_python("0123456789ab")) is RunId


@given(st.text(max_size=20) | st.text(alphabet="./-a\0\n[]", max_size=8))
def test_a_safe_name_is_one_part_of_a_path(text):
    try:
        name = SafeName(text)
    except ValueError:
        with pytest.raises(ValidationError):
            TypeAdapter(SafeName).validate_python(text)
        return
    assert TypeAdapter(SafeName).validate_python(text) == name == text
    assert "/" not in name and name.isprintable() and name not in ("", ".", "..") and not name.startswith("-")


@pytest.mark.parametrize("text", ["docker", "docker[network=a/b]", "docker[a]-no-seccomp"])
def test_an_arm_may_name_a_level(text):
    assert TypeAdapter(ArmName).validate_python(text) == text


@pytest.mark.parametrize("text", ["", "..", "/x", "a[b\nc]", "a[\0]", "a/b", "a[b][c]"])
def test_an_arm_has_no_other_name(text):
    with pytest.raises(ValidationError):
        TypeAdapter(ArmName).validate_python(text)


def test_a_group_is_below_a_run():
    assert GroupName(RUN, "ssh-far").below("1-docker-server") == f"{RUN}/ssh-far/1-docker-server"


@pytest.mark.parametrize("parts", [("..",), ("a/b",), ("",), ("/sys",), ("a", "..")])
def test_no_group_is_elsewhere(parts):
    with pytest.raises(ValueError):
        GroupName(RUN, *parts)
    with pytest.raises(ValueError):
        GroupName("..", "a")
