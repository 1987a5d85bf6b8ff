"""The numbers of namespaces, from links in /proc."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.linux.namespaces import namespaces_in, namespaces_of


def test_those_of_a_process_are_its_folder_s_links(tmp_path: Path):
    (tmp_path / "ns").mkdir()
    for kind, number in (("net", 4026531840), ("mnt", 4026532177)):
        (tmp_path / "ns" / kind).symlink_to(f"{kind}:[{number}]")
    assert namespaces_of(tmp_path) == {"mnt": 4026532177, "net": 4026531840}
    assert namespaces_of(tmp_path / "gone") == {}


def test_a_link_that_cannot_be_read_is_omitted():
    def link(kind: str) -> str:
        if kind != "net":
            raise PermissionError(13, "Permission denied")
        return "net:[7]"

    assert namespaces_in(link) == {"net": 7}


@pytest.mark.parametrize("text", ["", "unknown", "net", "net:[]", "net:[-1]", "net:[1]x"])
def test_other_text_is_no_number(text: str):
    assert namespaces_in(lambda _: text) == {}


@given(st.text())
def test_no_text_is_a_fault(text: str):
    namespaces_in(lambda _: text)
