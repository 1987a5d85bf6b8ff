"""The numbers of namespaces, from links in /proc."""

from pathlib import Path

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
