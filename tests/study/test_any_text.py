"""Whatever is in a study file: it loads, or StudyError says why."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weighbridge.errors import StudyError
from weighbridge.model.study import Study
from weighbridge.study.loader import load

from .texts import FIRST_LOOK, LINES, NAME, loaded

BARE = re.sub(" *#.*", "", FIRST_LOOK)
"""Without its comments, which are half of it: changes there are of no interest."""
SCRAPS = st.sampled_from(
    [
        "[", "]", "{", "}", ":", ": ", "-", "- ", "\n", "\t", "  ", "#", "&a ", "*a", "<<: *a", "!!set ", "!x ",
        "null", "~", "true", "1", "-1", "1.5", "1e999", ".nan", ".inf", "0x1f", "2026-01-01", "'", '"', "|", ">",
        "?", "%", "10s", "kind", "kind: docker", "[1, 2]", "{a: b}", "\x00", "\x85", "\ufeff", "é", "\U0001f600",
        "9" * 50,
    ]
)  # fmt: skip


def _holds(text: str) -> Study | None:
    try:
        study = loaded(text)
    except StudyError as error:
        for line in str(error).splitlines():
            assert line.startswith(f"{NAME}:")
            assert line.isprintable()
        return None
    assert study.arms
    assert study.cells
    assert study.baseline.aa_of is None
    return study


@given(st.text(max_size=200))
@example("a: !!binary x")
@example("a: !!int x")
@example("a: !!timestamp x")
@example("a: 2026-99-99")
@example("<<: [1]")
@example("a: &a\n  <<: *a\n")
def test_arbitrary_text(text: str):
    _holds(text)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_in_a_file(tmp_path_factory: pytest.TempPathFactory, data: bytes):
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(data)
    with pytest.raises(StudyError):
        load(str(path))


@given(st.data())
def test_small_changes_of_the_bundled_study(data: st.DataObject):
    text = BARE
    for _ in range(data.draw(st.integers(1, 3))):
        begin = data.draw(st.integers(0, len(text)))
        end = min(len(text), begin + data.draw(st.sampled_from([0, 0, 1, 2, 5, 30])))
        text = text[:begin] + data.draw(SCRAPS | st.text(max_size=2)) + text[end:]
    _holds(text)


PLACES = [
    "small", "What does it cost?", "[server]", "{cpus: 1, memory: 512MiB, pin: spread}", "512MiB", "spread",
    "baseline: native", "{kind: native}", "bridge}", "iperf3", "20}", "{blocks: 10}", "10}", "3%", "seed: 7",
]  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["10s", "1MiB", "2%"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(PLACES), VALUES)
def test_any_value_at_any_place(place: str, value: object):
    import json

    text = json.dumps(value).replace("NaN", ".nan").replace("-Infinity", "-.inf").replace("Infinity", ".inf")
    key, _, _ = place.partition(": ")
    new = (
        f"{key}: {text}"
        if ": " in place and not place.startswith("{")
        else text + ("}" if place.endswith("}") else "")
    )
    _holds(LINES.replace(place, new, 1))
