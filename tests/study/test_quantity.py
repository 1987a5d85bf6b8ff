"""Sizes, rates, times and shares always carry their unit."""

import contextlib
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from sentences import raises_sentence
from weighbridge.model.quantity import (
    LARGEST,
    RATE_UNITS,
    SHARE_UNITS,
    SIZE_UNITS,
    TIME_UNITS,
    Duration,
    PacketSize,
    Rate,
    Share,
    Size,
    parse_quantity,
)

KINDS = {"a time": TIME_UNITS, "a size": SIZE_UNITS, "a rate": RATE_UNITS, "a share": SHARE_UNITS}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Duration, "10s", 10.0), (Duration, "1.5 min", 90.0), (Duration, " 2h ", 7200.0), (Duration, "250ms", 0.25),
        (Duration, "0s", 0.0), (Size, "1KiB", 1024), (Size, "1kB", 1000), (Size, "1.5GiB", 1610612736),
        (Size, "0.1B", 0), (Rate, "10Mbit/s", 1e7), (Rate, "10mbit", 1e7), (Rate, "1Gbit/s", 1e9),
        (Share, "2%", 0.02), (Share, "0.5 %", 0.005),
    ],
)  # fmt: skip
def test_quantities_are_in_their_base_unit(kind: object, text: str, value: float):
    read = TypeAdapter(kind).validate_python(text)
    assert read == pytest.approx(value)
    assert type(read) is type(value)


@pytest.mark.parametrize("what", KINDS)
@pytest.mark.parametrize(
    "value",
    [
        "10", "s", "", " ", "-1s", "+1s", "1e3s", ".5s", "1.s", "1,5s", "nan", "nans", "inf", "infs", "1 0s",
        "1s s", "٣s", "1_000s", "0x1s", "1 parsec", 10, 1.5, 0, -1, math.nan, math.inf, True, False, None, [],
        ["1s"], {}, b"1s",
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_a_value_error_that_names_the_units(what: str, value: object):
    with pytest.raises(ValueError, match=r"s|%") as caught:
        parse_quantity(value, KINDS[what], what)
    assert all(unit in str(caught.value) for unit in KINDS[what])


@pytest.mark.parametrize("what", ["a time", "a size", "a rate", "a share"])
def test_a_bare_number_is_told_how_it_is_written(what: str):
    with raises_sentence(ValueError):
        parse_quantity(7, KINDS[what], what)


@pytest.mark.parametrize("what", KINDS)
@pytest.mark.parametrize("digits", [20, 300, 400, 5000])
def test_too_much_is_refused(what: str, digits: int):
    with raises_sentence(ValueError) as caught:
        parse_quantity("9" * digits + list(KINDS[what])[-1], KINDS[what], what)
    assert len(str(caught.value)) < 200


@given(st.text(max_size=20) | st.integers() | st.floats() | st.none())
def test_anything_is_a_finite_number_or_a_validation_error(value: object):
    for kind in (Duration, Size, Rate, Share):
        with contextlib.suppress(ValidationError):
            assert math.isfinite(TypeAdapter(kind).validate_python(value))


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_what_is_written_is_what_is_read(what: str, data: st.DataObject):
    units = KINDS[what]
    unit = data.draw(st.sampled_from(sorted(units)))
    number = data.draw(st.integers(0, int(LARGEST[what] / units[unit])))
    assert parse_quantity(f"{number}{unit}", units, what) == pytest.approx(number * units[unit])


def test_a_packet_size_is_a_size_or_the_word_mtu():
    adapter = TypeAdapter(PacketSize)
    assert [adapter.validate_python(each) for each in ("mtu", "1468B", "1KiB")] == ["mtu", 1468, 1024]
    for wrong in ("MTU", "mtu ", 1468, "1468", None):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)
    assert re.match(adapter.json_schema()["pattern"], "mtu")
