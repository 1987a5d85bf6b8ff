"""Every command that opens a run directory or a fleet's folder, and the parameters of commands that do not."""

from collections.abc import Iterator
from pathlib import Path

import typer

from weighbridge.cli.app import app

RUN, OTHER, ABOVE, NEW = "{run}", "{other}", "{above}", "{new}"
"""The changed run, a valid one, the folder that both are in, and a path where nothing is."""

OF_RUNS: dict[str, str] = {
    "report": "report {run}",
    "report-all": "report {run} --all --table *.*.*",
    "report-json": "report {run} --json",
    "report-markdown": "report {run} --markdown",
    "report-latex": "report {run} --latex",
    "report-svg": "report {run} --svg",
    "report-methods": "report {run} --methods",
    "report-methods-latex": "report {run} --methods --latex",
    "report-bib": "report {run} --bib",
    "report-openmetrics": "report {run} --openmetrics",
    "report-action-benchmark": "report {run} --github-action-benchmark",
    "report-html": "report {run} --html {new}.html",
    "report-fail-if": "report {run} --fail-if netns.own.time>35%",
    "compare": "compare {run} {other}",
    "compare-with": "compare {other} {run} --all --changed sysctl:vm.swappiness",
    "compare-json": "compare {other} {run} --json",
    "compare-markdown": "compare {run} {other} --markdown",
    "compare-html": "compare {other} {run} --html {new}.html",
    "history": "history {above}",
    "history-json": "history {above} --json",
    "history-html": "history {above} --html {new}.html",
    "gate": "gate {run} --budget *.*.*<=35%",
    "gate-json": "gate {run} --budget *.*.*<=35% --json",
    "gate-against": "gate {run} --against {other} --margin 3%",
    "gate-against-it": "gate {other} --against {run} --margin 3%",
    "gate-extend": "gate {run} --budget *.*.*<=52% --extend 1s --yes",
    "gate-files": "gate {run} --budget *.*.*<=35% --junit {new}.xml --markdown {new}.md --bmf {new}.json",
    "gate-github": "gate {run} --budget *.*.*<=35% --annotations github",
    "gate-gitlab": "gate {run} --budget *.*.*<=35% --annotations gitlab",
    "explain": "explain {run} --out {new} --blocks 2 --rehearsal",
    "explain-out": "explain {other} --out {run} --blocks 2 --rehearsal --yes",
    "explain-save": "explain {run} --save {new}.yaml",
    "export": "export {run}",
    "export-csv": "export {run} --csv {new}",
    "registry-add": "registry add {run} {new}",
    "registry-index": "registry index {run}",
    "registry-list": "registry list {run}",
    "registry-of-others": "python registry {other} {run} {new}",
    "python-load": "python load {run}",
    "python-compare": "python compare {run} {other}",
    "run-continue": "run --out {run} --yes",
    "run-unasked": "run --out {run}",
    "run-blocks": "run --out {run} --blocks 9 --yes --strict",
    "run-study": "run {study} --out {run} --yes",
    "run-explain": "run {study} --explain --out {run} --yes",
    "replicate-report": "replicate --report {run}",
    "replicate-report-json": "replicate --report {run} --json",
    "replicate-claims": "replicate --report {run} --claims",
    "replicate-latex": "replicate --report {run} --latex",
    "replicate-csv": "replicate --report {run} --csv",
    "replicate-continue": "replicate --out {run} --yes",
    "durability": "durability --out {run} --yes --seconds 1",
    "weigh-out": "weigh --out {run} --rehearsal --blocks 2 -- true",
    "comment": "comment {run} --markdown {new}.md",
    "clean": "clean --run {run}",
    "clean-check": "clean --run {run} --check --json",
    "kit-out": "kit {study} --out {run}",
    "kit-run": "kit --run {run} --out {new}",
    "fleet-report-run": "fleet report {above}",
}
"""What is tried of a run directory, by name."""
WRITING = ("run-continue", "gate-extend", "clean", "run-blocks", "replicate-continue", "run-unasked", "durability")
"""Those that remove, kill or measure something."""
OF_KEPT_RUNS = {
    name: line
    for name, line in OF_RUNS.items()
    if line.startswith(("report", "compare", "comment", "gate", "history", "export", "python"))
    and "--extend" not in line
} | {
    name: OF_RUNS[name]
    for name in (
        "explain-save",
        "replicate-report",
        "replicate-report-json",
        "replicate-claims",
        "replicate-latex",
        "replicate-csv",
        "kit-run",
        "clean",
        "fleet-report-run",
    )
}
"""What is tried of runs that need programs which take minutes to build: nothing that continues them."""

OF_FLEETS: dict[str, str] = {
    "fleet-status": "fleet status {run}",
    "fleet-status-json": "fleet status {run} --json",
    "fleet-report": "fleet report {run}",
    "fleet-report-json": "fleet report {run} --json",
    "fleet-report-out": "fleet report {run} --out {new}.html --margin 3%",
    "fleet-report-against": "fleet report {run} --against {other}",
    "fleet-report-against-it": "fleet report {other} --against {run}",
    "fleet-continue": "fleet continue {run} --yes",
    "fleet-continue-ended": "fleet continue {run} --yes --driver-ended",
    "fleet-continue-unasked": "fleet continue {run}",
    "fleet-cancel": "fleet cancel {run}",
    "fleet-submit": "fleet submit {study} --on {list} --out {run} --yes --rehearsal",
    "fleet-history": "history {run}",
}
"""What is tried of a fleet's folder, by name."""
OF_DRIVEN_FLEETS: dict[str, str] = {
    "fleet-drive": "fleet drive {run}",
    "fleet-continue-driven": "fleet continue {run} --yes --driver-ended",
}
"""What is tried of one whose runs are finished: what is missing would be measured, which takes ten seconds."""

NO_RUN = {
    "weigh --compose": "a Compose file",
    "weigh --save": "a new study file",
    "weigh --export-json": "a new file",
    "weigh --markdown": "a comment",
    "comment --markdown": "a comment",
    "comment --add": "Markdown of the same job",
    "gate --budget-file": "a file of budgets",
    "init file": "a new study file",
    "kit --out": "a new folder",
    "export --csv": "a folder of tables",
    "export --parquet": "a folder of tables",
    "calibrate --out": "a folder of new runs",
    "report --html": "a page",
    "compare --html": "a page",
    "history --html": "a page",
    "gate --junit": "a report",
    "gate --markdown": "a summary",
    "gate --bmf": "a report",
    "explain --save": "a new study file",
    "fleet report --out": "a page",
}
"""Parameters that are paths, but no run directory is read there, with what they are."""


def paths_of_commands() -> Iterator[tuple[str, str]]:
    """Yield each parameter of the command line that names a path or a DIR: the command's words, and the parameter."""
    yield from _paths(typer.main.get_command(app), ())


def _paths(command: object, words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from _paths(inner, (*words, name))
    for parameter in getattr(command, "params", ()) if words else ():
        annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
        if annotation is Path or "DIR" in (getattr(parameter, "metavar", None) or ""):
            option = next((each for each in parameter.opts if each.startswith("--")), parameter.name)
            yield " ".join(words), option


def is_tried(command: str, parameter: str) -> bool:
    """Whether a line of `OF_RUNS` or `OF_FLEETS` gives a run to this parameter of the command."""
    for line in (*OF_RUNS.values(), *OF_FLEETS.values(), *OF_DRIVEN_FLEETS.values()):
        rest = line.removeprefix(f"{command} ")
        if rest == line:
            continue
        before = "" if parameter.startswith("--") else None
        words = rest.split()
        for previous, word in zip(["", *words], words, strict=False):
            if word in (RUN, OTHER, ABOVE) and (
                previous == parameter or (before is None and not previous.startswith("--"))
            ):
                return True
    return False
