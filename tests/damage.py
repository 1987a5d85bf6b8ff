"""Damage to captured outputs. Each example is tried with every output: to make it up takes longer than to read it."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

damaged_anywhere: Callable[[Callable[..., None]], Callable[..., None]] = given(
    seed=st.integers(0, 2**32),
    length=st.integers(0, 60),
    damage=st.one_of(st.binary(max_size=20), st.sampled_from([b"null", b"NaN", b"1e999", b"9" * 400])),
)
"""Gives a test what `damaged` takes."""


def damaged(output: bytes, name: str, seed: int, length: int, damage: bytes) -> bytes:
    """Return an output with ``damage`` in the place of ``length`` bytes, where its name and the seed say."""
    start = random.Random(f"{seed} {name}").randint(0, len(output))
    return output[:start] + damage + output[start + length :]


@contextmanager
def naming(what: object) -> Iterator[None]:
    """Have a failure name the one of many that it is about."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as failure:
        raise AssertionError(what) from failure
