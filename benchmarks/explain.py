"""Does `explain` find a cause that was put there on purpose, and does it name one where there is none?

    python benchmarks/explain.py [--studies why-seccomp ...] [--runs N] [--nothing N] [--out FOLDER]

Each known answer (`CAUSES`) is a bundled study whose environment has one cause of most of its cost; it is run
``--runs`` times. *Found*: the cause is the largest of the mechanisms that were switched, and its interval excludes
no cost. *Proven*: its p-value after Holm does as well. What is read is ``report --json`` alone.

Where **nothing** was put there, four mechanisms are installed that switch nothing (as a plug-in package of their own:
`PLACEBO`): the arm without them is the environment itself. ``--nothing`` runs of each program of `PROGRAMS`: in how
many is any of them named, before and after Holm?

Needs root and what each study needs; a study that cannot run here is a line with the reason. Exits with 1 where a
cause is not found in nine of ten runs, or a placebo is named in more than one run of twenty.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CAUSES: Mapping[str, Sequence[str]] = {
    "why-seccomp": ("seccomp",),
    "why-cpu-period": ("cpu-period", "cpu-limit"),
    "why-open-files": ("open-files",),
    "why-allocator": ("variables",),
    "why-libc": ("userland",),
    "why-published-port": ("docker-proxy",),
    "why-bridge-netfilter": ("bridge-netfilter", "filter-rules"),
    "why-rootless-network": ("user-mode-network",),
    "why-overlay-mtu": ("mtu",),
    "why-database-layer": ("writable-layer",),
    "why-fsync-ignored": ("disk-cache",),
    "why-nfs-sync": ("nfs-sync",),
    "why-emulated-nic": ("emulated-nic",),
    "why-gvisor-calls": ("user-space-kernel",),
}
"""The bundled studies of known answers, and the mechanisms that are the cause: of several any may be the largest."""
PROGRAMS: Mapping[str, Sequence[str]] = {
    "computing": ("perl", "-e", "$n++ for 1..4_000_000"),
    "system calls": ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=300000"),
    "processes": ("sh", "-c", "n=0; while [ $n -lt 150 ]; do /bin/true; n=$((n + 1)); done"),
}
PLACEBOS = 4
PLACEBO = '''
from weighbridge.model.mechanism import Mechanism


class Placebo(Mechanism):
    """It switches nothing."""

    summary = "nothing at all"
    switched = "as it is → as it is"
    remedy = "nothing"
    source = "nobody"

    def __init__(self, number):
        self.kind = self.title = f"placebo-{number}"

    def off(self, subject):
        return None if subject.arm.name == subject.baseline.name else subject.arm


PLUGINS = tuple(Placebo(number) for number in range(1, NUMBER + 1))
'''
WEIGHBRIDGE = (sys.executable, "-m", "weighbridge")
PATIENCE_S = 1800.0


def placebos(folder: Path) -> Mapping[str, str]:
    """Install the package of placebos in a folder; return the variables with which it is found."""
    (folder / "placebos.py").write_text(PLACEBO.replace("NUMBER", str(PLACEBOS)))
    info = folder / "placebos-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: placebos\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[weighbridge.mechanisms]\nplacebos = placebos:PLUGINS\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


def study_of(name: str, blocks: int, seed: int) -> str:
    """Return a study of one program in a container, whose cost is explained."""
    return json.dumps({
        "study": "nothing-put-there", "question": "Is a mechanism named that is none?", "baseline": "native",
        "environments": {"native": {"kind": "native"}, "docker": {"kind": "docker", "network": "none"}},
        "workloads": {"program": {"kind": "command", "run": list(PROGRAMS[name])}}, "explain": True,
        "repetitions": {"blocks": blocks}, "equivalence": "3%", "meters": {"source": "off"}, "seed": seed,
    })  # fmt: skip


def explained(study: str, directory: Path, variables: Mapping[str, str]) -> tuple[Mapping[str, Any] | None, str]:
    """Run a study, unless its run is there; return the explanation that its report gives, else why there is none."""
    environ = {**os.environ, "WEIGHBRIDGE_BESIDE_OTHERS": "yes", **variables}
    if not directory.exists():
        argv = [*WEIGHBRIDGE, "run", study, "--out", str(directory), "--yes"]
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode:
            return None, (done.stderr.strip() or done.stdout.strip()).splitlines()[-1][:300]
    argv = [*WEIGHBRIDGE, "report", str(directory), "--json"]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    explanations = json.loads(done.stdout)["explanations"]
    return (explanations[0], "") if explanations else (None, "its cost is not explained")


def size(cost: Mapping[str, Any]) -> float:
    """Return how large a cost is, on the scale on which costs of one metric add up."""
    if cost["cost_unit"] == "%":
        return abs(math.log1p(max(-0.999, cost["cost"] / 100)))
    return abs(float(cost["cost"]))


def excludes_nothing(cost: Mapping[str, Any]) -> bool:
    """Whether the interval of a cost excludes 0."""
    return bool(cost["cost_low"] is not None and (cost["cost_low"] > 0 or cost["cost_high"] < 0))


def known_answer(name: str, runs: int, folder: Path) -> bool:
    """Run a known answer so often, print its line, and return whether its cause was found in nine of ten runs."""
    found = proven = done = 0
    sizes, second, seconds, why = [], [], [], ""
    for number in range(1, runs + 1):
        begun = time.monotonic()
        explanation, why = explained(name, folder / f"{name}-{number}", {})
        if explanation is None:
            print(f"  {name} {number}: {why}", flush=True)
            continue
        done += 1
        seconds.append(time.monotonic() - begun)
        costs = {each["kind"]: each["cost"] for each in explanation["mechanisms"] if each["cost"]}
        ordered = sorted((kind for kind in costs if costs[kind]["cost"] is not None), key=lambda k: -size(costs[k]))
        causes = [kind for kind in ordered if kind in CAUSES[name]]
        cause = costs[causes[0]] if causes else None
        if cause is not None and ordered[0] == causes[0] and excludes_nothing(cause):
            found += 1
            proven += cause["verdict"] == "significant"
        if cause is not None:
            sizes.append(cause["cost"])
        second += [costs[kind]["cost"] for kind in ordered if kind not in CAUSES[name]][:1]
        print(f"  {name} {number}: {explanation['text']}", flush=True)
    figures = (
        f"{statistics.median(sizes):6.1f} ({min(sizes):.1f} to {max(sizes):.1f}), next "
        f"{statistics.median(second) if second else 0:5.1f}, {statistics.median(seconds):.0f} s each"
        if sizes else why
    )  # fmt: skip
    print(f"{name:<24} {done:>3} runs  found {found:>3}  proven {proven:>3}  {figures}", flush=True)
    return done > 0 and found >= 0.9 * done


def nothing_put_there(name: str, runs: int, blocks: int, folder: Path, variables: Mapping[str, str]) -> int:
    """Run a program with placebos so often, print its line, and return in how many runs one was named."""
    apart = named = parts = done = 0
    for number in range(1, runs + 1):
        study = folder / f"nothing-{name.replace(' ', '-')}-{number}.yaml"
        study.write_text(study_of(name, blocks, number))
        explanation, why = explained(str(study), study.with_suffix(""), variables)
        if explanation is None:
            print(f"  {name} {number}: {why}", flush=True)
            continue
        costs = [each["cost"] for each in explanation["mechanisms"] if each["kind"].startswith("placebo")]
        assert len(costs) == PLACEBOS and all(costs), explanation
        done += 1
        parts += len(costs)
        apart += sum(excludes_nothing(cost) for cost in costs)
        named += any(cost["verdict"] == "significant" for cost in costs)
    print(
        f"nothing: {name:<14} {done:>3} runs  a placebo named in {named:>2}; "
        f"{apart} of {parts} intervals exclude no cost (5 % expected)", flush=True,
    )  # fmt: skip
    return named


def main() -> int:
    """Print a line for each study and each program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", nargs="*", choices=CAUSES, default=[*CAUSES])
    parser.add_argument("--runs", type=int, default=10, help="of each study")
    parser.add_argument("--nothing", type=int, default=7, help="runs of each program where nothing was put there")
    parser.add_argument("--blocks", type=int, default=12, help="of these")
    parser.add_argument("--out", type=Path, help="where runs are kept; those that are there are not repeated")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as elsewhere, tempfile.TemporaryDirectory() as package:
        folder = given.out or Path(elsewhere)
        folder.mkdir(parents=True, exist_ok=True)
        wrong = [name for name in given.studies if given.runs and not known_answer(name, given.runs, folder)]
        variables = placebos(Path(package))
        programs = PROGRAMS if given.nothing else ()
        named = sum(nothing_put_there(name, given.nothing, given.blocks, folder, variables) for name in programs)
    many = named > max(1, len(PROGRAMS) * given.nothing // 20)
    print(f"not found: {', '.join(wrong) or 'none'}; a placebo was named in {named} runs")
    return int(bool(wrong) or many)


if __name__ == "__main__":
    sys.exit(main())
