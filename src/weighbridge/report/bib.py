"""A run as a BibTeX entry."""

import hashlib

from weighbridge.analysis.results import Analysis
from weighbridge.analysis.sessions import HOST
from weighbridge.model.text import one_line
from weighbridge.report.export.provenance import provenance
from weighbridge.report.latex import latex
from weighbridge.store.run import DATABASE, RunStore

_TO_ADD = "Add the author, and the url or doi of the archive that has the run."
_BRACES = {r"\{": r"\textbraceleft{}", r"\}": r"\textbraceright{}"}
"""BibTeX counts every brace, also behind a backslash."""


def run_bib(store: RunStore, analysis: Analysis) -> str:
    """Return the entry of a run: study, machine, date, version, and the digest of its file.

    Raises RunDirectoryError if the file of the run does not have all of its data.
    """
    origin, run_id = provenance(store), store.run_id
    facts = {key: value for scope, key, value, _ in analysis.context.facts if scope == HOST}
    machine = [facts.get(name, "") for name in ("CPU", "kernel")]
    note = [
        f"Study {analysis.study}, run {run_id}",
        *([f"measured on {', '.join(filter(None, machine))}"] if any(machine) else []),
        f"SHA-256 of {DATABASE}: {hashlib.sha256(store.file()).hexdigest()}",
    ]
    title = f"{analysis.study}: {analysis.question}" if analysis.question else analysis.study
    fields = {
        "title": f"{{{_value(title)}}}",  # a second pair of braces keeps its capital letters
        "howpublished": _value(f"Run of Weighbridge {origin.versions.weighbridge or ''}"),
        **({"year": origin.date[:4], "date": origin.date[:10]} if origin.date else {}),
        "note": _value("; ".join(note)),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([_TO_ADD, f"@misc{{weighbridge-{run_id},", *lines, "}", ""])


def _value(text: str) -> str:
    """Return a text as the value of a field, whose braces are in pairs."""
    value = latex(one_line(text))
    for escaped, spelled in _BRACES.items():
        value = value.replace(escaped, spelled)
    return value
