"""A line that is indented wrongly is told as one, with the lines that it could belong beside."""

import pytest

from .test_mistakes import told
from .texts import LINES

NATIVE, BRIDGE = "  native: {kind: native}\n", "  bridge: {kind: docker, network: bridge}\n"
CPU = "  cpu: {kind: sysbench-cpu, duration: 1s}\n"
WRONG = {
    "deeper than the one before": (BRIDGE, f" {BRIDGE}", "bridge:", (3, 2)),
    "less deep than the one before": (BRIDGE, BRIDGE[1:], "bridge:", (1, 2)),
    "a first one that is deeper": (NATIVE, f"  {NATIVE}", "bridge:", (2, 4)),
    "a key of the study": ("question:", " question:", "question:", (1, 0)),
    "an option": (CPU, "  cpu:\n    kind: sysbench-cpu\n     threads: 2\n", "threads:", (5, 4)),
    "an option between": (CPU, "  cpu:\n      kind: sysbench-cpu\n    threads: 2\n", "threads:", (4, 6)),
    "after remarks": (CPU, f"# one\n\n        # two\n {CPU}", "cpu:", (3, 2)),
    "in a list": ("inside: [server]\n", "inside:\n  - server\n - client\n", "- client", (1, 2)),
}


@pytest.mark.parametrize(("old", "new", "where", "blanks"), WRONG.values(), ids=WRONG)
def test_the_line_and_the_indentations_that_fit_are_told(old: str, new: str, where: str, blanks: tuple[int, int]):
    assert LINES.count(old) == 1
    text = LINES.replace(old, new)
    ((line, sentence),) = told(text)
    here = next(number for number, each in enumerate(text.splitlines(), 1) if each.strip().startswith(where))
    assert line == here
    assert sentence.startswith(f"wrong indentation: this line begins with {blanks[0]} space")
    assert f" with {blanks[1]}" in sentence.partition(",")[2]


@pytest.mark.parametrize(
    ("old", "new"),
    [("What does it cost?", "what: now"), ("[server]", "[server"), ("seed: 7", "seed:7"), ("cost?", "'cost")],
)
def test_other_mistakes_are_not_told_as_indentation(old: str, new: str):
    text = LINES.replace(old, new)
    assert text != LINES
    assert all("indentation" not in sentence for _, sentence in told(text + "more: x\n"))


def test_what_is_not_indented_below_its_key_is_told_there():
    found = told(LINES.replace("environments:\n  native", "environments:\nnative").replace(BRIDGE, ""))
    assert any(sentence.startswith("environments: ") and "indented" in sentence for _, sentence in found)
