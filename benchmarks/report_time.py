"""What a report costs beside the run that it is about: the time of its analysis and of its page, and its size.

Give it finished runs. Each part is the best of ``--times``, in a process of its own so that nothing is warm, and
stands beside the time that the run's trials took. Exits with 1 where a report takes more than 2 % of its run.

    .venv/bin/python benchmarks/report_time.py runs/THAT-RUN [--times 3]
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from weighbridge.model.command import Command
from weighbridge.process import run

SHARE = 0.02
ONCE = """
import json, sys, time
from pathlib import Path
begun = time.perf_counter()
from weighbridge.report.analysis import analyse
from weighbridge.report.html import write_html
from weighbridge.store.run import RunStore
with RunStore(Path(sys.argv[1])) as store:
    loaded = time.perf_counter()
    analysis = analyse(store)
    analysed = time.perf_counter()
    page = write_html(store, Path(sys.argv[2]), analysis)
    written = time.perf_counter()
print(json.dumps({
    "import": loaded - begun, "analysis": analysed - loaded, "page": written - analysed,
    "trials": len(analysis.trials), "comparisons": len(analysis.compared),
    "run": sum(trial.duration_s for trial in analysis.trials), "bytes": page.stat().st_size,
}))
"""


def once(folder_of_a_run: Path) -> dict[str, Any]:
    """The seconds of each part, and what the report is about."""
    with tempfile.TemporaryDirectory() as folder:
        argv = (sys.executable, "-c", ONCE, str(folder_of_a_run), str(Path(folder) / "report.html"))
        done = run(Command(argv, deadline_s=600))
    if done.returncode != 0:
        raise SystemExit(f"no report can be made of {folder_of_a_run}: {done.last_words}")
    told: dict[str, Any] = json.loads(done.text)
    return told


def main() -> int:
    """Time each run's report and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--times", type=int, default=3)
    given, worst = parser.parse_args(), 0.0
    for each_run in given.runs:
        told = [once(each_run) for _ in range(given.times)]
        best = {part: min(each[part] for each in told) for part in ("import", "analysis", "page")}
        about, whole = told[0], sum(best.values())
        share = whole / about["run"] if about["run"] else 0.0
        worst = max(worst, share)
        parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in best.items())
        print(
            f"{each_run.name}: {about['trials']} trials of {about['run']:.0f} s, {about['comparisons']} comparisons: "
            f"{parts}; {share:.2%} of the run; page of {about['bytes'] / 1e6:.1f} MB"
        )
    print(f"goal: at most {SHARE:.0%} of the run: {'met' if worst <= SHARE else 'missed'}")
    return int(worst > SHARE)


if __name__ == "__main__":
    sys.exit(main())
