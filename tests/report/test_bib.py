"""The BibTeX entry of a run: its fields, and that names of a stranger cannot leave them."""

import hashlib
import re

from sentences import assert_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.report.bib import run_bib
from weighbridge.store.run import DATABASE, RunStore

from .latex_text import is_plain
from .made_up_runs import CREATED

FACTS = {"host": {"CPU": "Imaginary 3000", "kernel": "Linux 6.1.2"}}
FIELD = re.compile(r"  (\w+) = \{(.*)\},")


def fields_of(text: str) -> dict[str, str]:
    """Return the fields of an entry, whose braces must be in pairs for BibTeX, which counts escaped ones too."""
    note, begin, *lines, end = text.splitlines()
    assert (note.count("@"), begin[:18], end) == (0, "@misc{weighbridge-", "}")
    fields = [FIELD.fullmatch(line) for line in lines]
    for field in fields:
        assert field is not None
        depth = 0
        for brace in re.findall(r"[{}]", field[2]):
            depth += 1 if brace == "{" else -1
            assert depth >= 0
        assert depth == 0
    return {field[1]: field[2] for field in fields if field is not None}


def test_it_names_the_run_and_its_file(run):
    directory = run(costs={"bridge": 1.25}, facts=FACTS).directory
    with RunStore(directory, writable=True) as writable:
        writable.set_info("created", CREATED)
    with RunStore(directory) as store:
        fields = fields_of(run_bib(store, analyse(store)))
    digest = hashlib.sha256((directory / DATABASE).read_bytes()).hexdigest()
    assert fields["note"].endswith(f"SHA-256 of run.sqlite: {digest}")
    assert (fields["year"], fields["date"]) == ("2023", "2023-11-14")
    assert_sentence("\n".join(fields[name] for name in ("title", "howpublished")))
    assert_sentence(fields["note"].removesuffix(digest))


def test_names_of_a_stranger_stay_in_their_field(run):
    words = '}, author = {x}} @misc{y, \\input{z} % # & _ ^ ~ $ " {{ \\'
    store = run(costs={"bridge": 1.25}, study=words, question=f"{words}\n\x1b[2J}}", facts={"host": {"CPU": words}})
    fields = fields_of(run_bib(store, analyse(store)))
    assert [*fields] == ["title", "howpublished", "year", "date", "note"]
    for value in fields.values():
        assert is_plain(value.removeprefix("{").removesuffix("}"))
