"""What Python, notebooks and registries do with a run: the lines of `commands.py` that begin with ``python``."""

import contextlib
import lzma
import sys
from pathlib import Path

import weighbridge
from weighbridge.analysis.analyse import analyse
from weighbridge.errors import Unavailable, WeighbridgeError
from weighbridge.features.archive.entry import entry_of
from weighbridge.features.archive.kept_file import kept_file
from weighbridge.features.archive.registry_folder import add_run, rebuild
from weighbridge.store.run import RunStore


def main(what: str, *paths: str) -> None:
    """Do it, and end as a command ends: with the sentence and the exit code of the error."""
    try:
        {"load": load, "compare": compare, "registry": registry}[what](*map(Path, paths))
    except WeighbridgeError as error:
        print(f"weighbridge: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def load(run: Path) -> None:
    """Load a run, and show all of it as a notebook does."""
    loaded = weighbridge.load(run)
    print(loaded, loaded._repr_html_())
    for rows in (loaded.costs, loaded.trials, loaded.facts, loaded.samples):
        print(rows, rows._repr_html_())
        with contextlib.suppress(Unavailable):
            rows.to_pandas()
    for cost in loaded.costs:
        pairs = loaded.pairs(cost.environment, cost.workload, cost.metric, cost.level)
        print(cost, cost._repr_html_(), len(pairs))
    for workload, metric in {(cost.workload, cost.metric) for cost in loaded.costs.where(primary=True)}:
        with contextlib.suppress(WeighbridgeError):
            print(loaded.plot(workload, metric).svg)


def compare(first: Path, second: Path) -> None:
    """Compare two runs."""
    rows = weighbridge.compare(first, second)
    print(rows, rows._repr_html_())


def registry(valid: Path, run: Path, place: Path) -> None:
    """Keep a valid run in a registry, replace its file by another run, and make the pages again."""
    with RunStore(valid) as store:
        file, *_ = add_run(place, entry_of(store, analyse(store)), kept_file(store).data)[0]
    (place / file).write_bytes(lzma.compress((run / "run.sqlite").read_bytes(), preset=0))
    for each in rebuild(place).skipped:
        print(f"skipped {each.name}: {each.reason}")
    for page in place.rglob("*.html"):
        print(page.read_text())
