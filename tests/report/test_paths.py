"""The tables of network paths: no figure and no name is cut at any width, and an empty column is left out."""

import pytest
from rich.console import Console

from sentences import assert_sentence
from weighbridge.analysis.paths import Paths
from weighbridge.report.sections.top import path_sections
from weighbridge.report.terminal import path_parts
from weighbridge.report.text.paths import difference_words

from .measured_paths import LOOPBACK_PATH, PORT_PATH, TCP_CELL, measured_paths

LONG = "xen-beside (inside Xen's first domain inside QEMU, TCG: emulated; Xen PV inside QEMU, TCG: emulated)"
LOCAL = LOOPBACK_PATH.model_copy(update={"routers": 0})
PLAIN = PORT_PATH.model_copy(update={"translation": "none", "routers": 0, "rules": 0, "hooks": ()})
PROXIED = PORT_PATH.model_copy(update={"translation": "proxy", "mss": 50688})
PATHS = {
    "port": (LOOPBACK_PATH, PORT_PATH),
    "plain": (LOCAL, PLAIN),
    "routers unknown": (LOOPBACK_PATH, PLAIN),
    "proxied": (LOOPBACK_PATH, PROXIED),
    "rules unseen": (LOOPBACK_PATH, PORT_PATH.model_copy(update={"unseen_rules": 18})),
    "rules unknown": (LOOPBACK_PATH, PORT_PATH.model_copy(update={"rules": None})),
}


def terminal(given, width: int) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as said:
        console.print(*path_parts(given), sep="\n")
    return "\n".join(map(str.rstrip, said.get().splitlines()))


@pytest.mark.parametrize("name", PATHS)
def test_a_table_of_paths(name: str):
    given = measured_paths("here", other=name)
    native, other = PATHS[name]
    given.paths = Paths({("native", "here"): native, (name, "here"): other}, frozenset({"tcp"}))
    (section,) = path_sections(given)
    unlike = given.paths.difference(TCP_CELL, name, "native")
    assert unlike is not None and len(section.table.heads) == len(section.table.rows[1])
    for text in (terminal(given, 80), terminal(given, 200), str(section.table.rows[1]), difference_words(unlike)):
        assert_sentence(text)


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("name", [LONG, "x" * 60])
def test_long_names_fold_and_every_figure_stands_beside_them(name: str, width: int):
    given = measured_paths("here", other=name)
    given.of("tcp (client=here)")[1].comparisons[0].value = 12400.0
    said = terminal(given, width)
    assert "…" not in said and all(len(line) <= width for line in said.splitlines())
    words = {"host:", "veth", "1448", "65483", "DNAT", "3", "2.00", "12,400", *name.split()} - {"x" * 60}
    assert words <= {*said.split()} and said.count("x" * 20) >= 3 * (name == "x" * 60)
