"""What each kind of site that can be opened here takes: time to ready and to close, memory, a command's round trip.

Kinds are what the registry has, each with its default options and with those of its variants; one that is not ready
here, or cannot be opened, is listed with the reason. Every kind is opened once first (engine, image, disk and network
are then there) and stays open; after that, in rounds over all kinds in random order, one fresh site of each is
opened until its first ``true`` has been answered, and closed, and a share of ``--trips`` runs of ``true`` is made in
the open site. A round trip is what passed here from asking for the program until its end was told, less how long it
ran by the launcher of its site (``outside_s - duration_s``). At last ``--idle`` fresh sites of each kind are opened
together: memory of the machine is the slope of what MemAvailable lacks against their number (of a busy machine it
tells nothing), that of the group the mean of what their control groups are charged with. "own" is the CPU time of our
own Python in the time to ready. All figures are medians [least, most] of one run, with ratios to native in it; no
limits are set. "differ" is how much single starts differ: the standard deviation of the logarithm of the time to
ready (docs/understand/noise.md). Needs root for most kinds.

    .venv/bin/python benchmarks/boot.py [--rounds 10] [--trips 200] [--idle 4] [--seed 1] [--json]
"""

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Interrupted, Unavailable
from weighbridge.model.command import Command
from weighbridge.model.environment import Environment, Needs
from weighbridge.model.host import Host, Limits, RunContext
from weighbridge.model.measurement import TrialFailure
from weighbridge.model.names import RunId, SafeName
from weighbridge.model.openings import Opened, Openings, read_opened
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.userland import UserlandSpec
from weighbridge.runner import clean, run_lock
from weighbridge.runner.openings import open_sites
from weighbridge.runner.preflight import ready
from weighbridge.runner.signals import interruptible
from weighbridge.runner.sites import OpenSite, site_name
from weighbridge.userland.build import cache_folder, ensure
from weighbridge.workloads.density import memory_per_site

TRUE = Command(("true",))
SETTLE_S = 0.5
BASELINE = "native"
_MIB = 2**20
_NUMBERS = count()


@dataclass(slots=True)
class Kind:
    """One kind of site: its first one, which stays open, and what was measured. Seconds, MiB."""

    name: str
    opened: OpenSite
    to_ready: list[float] = field(default_factory=list)
    to_close: list[float] = field(default_factory=list)
    own_cpu: list[float] = field(default_factory=list)
    trips: list[float] = field(default_factory=list)
    machine_mib: float | None = None
    group_mib: float | None = None

    def another(self) -> AbstractContextManager[Site]:
        """Open one more site like the first."""
        return self.opened.open_fresh(_site_name(self.name))

    def note(self, found: Opened) -> None:
        """The times of fresh sites."""
        for each in found.openings:
            self.to_ready.append(each.ready_s)
            self.own_cpu.append(each.own_cpu_s)
            self.to_close += [] if each.close_s is None else [each.close_s]

    def note_memory(self, found: Opened) -> None:
        """The memory of idle ones."""
        groups = [each.group_bytes for each in found.openings if each.group_bytes is not None]
        self.machine_mib = memory_per_site(found) / _MIB
        self.group_mib = statistics.mean(groups) / _MIB if groups else None


def candidates() -> Iterator[tuple[str, Environment, Any]]:
    """Every environment with its defaults, and with the options of each variant."""
    for kind, environment in registry.environments().items():
        yield kind, environment, environment.options()
        for name, options in environment.variants().items():
            yield name, environment, options


def _site_name(kind: str) -> SafeName:
    return site_name(next(_NUMBERS), kind, "solo")


@contextmanager
def a_run() -> Iterator[RunContext]:
    """What sites are opened in; everything of it is closed and swept at the end, and found by clean after a kill."""
    run_id, cache = RunId.new(), cache_folder()
    with run_lock.claim(run_id, cache) as folder:
        try:
            with ExitStack() as stack:
                yield RunContext(run_id, folder, cache, stack, lambda text: print(text, file=sys.stderr))
        finally:
            clean.sweep(run_id)
            run_lock.forget(run_id)


def open_kinds(run: RunContext, host: Host) -> tuple[list[Kind], dict[str, str]]:
    """The first site of each kind, and why there is none of the others."""
    kinds: list[Kind] = []
    refused: dict[str, str] = {}
    userland = ensure(UserlandSpec.of(["coreutils"], [], []), run.cache, run.say)
    for name, environment, options in candidates():
        state, problems = ready(environment, options), environment.check(options, Needs())
        if problems or not state.ready:
            refused[name] = "; ".join(problems) or state.detail
            continue
        request = SiteRequest(run, host, _site_name(name), "solo", userland, Limits())
        try:
            opened = OpenSite.open(run.stack, environment, options, request)
        except (Unavailable, EnvironmentLost) as why:
            refused[name] = str(why)
            continue
        kinds.append(Kind(name, opened))
    return kinds, refused


def measure(kinds: list[Kind], rounds: int, trips: int, idle: int, seed: int) -> None:
    """Rounds over all kinds, then idle sites of each."""
    chance = random.Random(seed)
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for kind in chance.sample(kinds, len(kinds)):
            kind.note(_opened(Openings(), kind))
            for _ in range(trips * number // rounds, trips * (number + 1) // rounds):
                done = kind.opened.site.run(TRUE)
                if done.returncode != 0 or done.outside_s is None:
                    raise SystemExit(f"{kind.name}: true ended with {done.returncode}: {done.last_words}")
                kind.trips.append(done.outside_s - done.duration_s)
    for kind in kinds:
        kind.note_memory(_opened(Openings(idle, together=True, settle_s=SETTLE_S), kind))


def _opened(asked: Openings, kind: Kind) -> Opened:
    try:
        site = kind.opened.site
        return read_opened(open_sites(asked, TRUE, kind.another, site.memory, {}, counted=site.counted))
    except TrialFailure as why:
        raise SystemExit(f"{kind.name}: {why}") from why


def document(kinds: list[Kind], refused: Mapping[str, str]) -> dict[str, Any]:
    """Everything that was measured, with medians and ratios to native."""
    native = next((kind for kind in kinds if kind.name == BASELINE), None)
    found: dict[str, Any] = {}
    for kind in kinds:
        values = {name: value for name, value in values_of(kind).items() if value}
        medians = {name: _middle(value) for name, value in values.items()}
        base = {name: _middle(value) for name, value in values_of(native).items() if value} if native else {}
        ratios = {name: medians[name] / base[name] for name in medians if base.get(name, 0) > 0}
        found[kind.name] = {
            "medians": medians,
            "ratios_to_native": ratios,
            "starts_differ": starts_differ(kind),
            "values": values,
        }
    return {"kinds": found, "not_opened": dict(refused)}


def starts_differ(kind: Kind) -> float | None:
    """Return the standard deviation of the logarithm of the time to ready, or None for a single start."""
    return statistics.stdev(map(math.log, kind.to_ready)) if len(kind.to_ready) > 1 else None


def values_of(kind: Kind) -> dict[str, Any]:
    """What was measured, by name."""
    names = ("to_ready", "to_close", "own_cpu", "trips", "machine_mib", "group_mib")
    return {name: getattr(kind, name) for name in names}


def _middle(value: float | list[float]) -> float:
    return statistics.median(value) if isinstance(value, list) else value


def table(kinds: list[Kind], refused: Mapping[str, str]) -> Iterator[str]:
    """The table, a line for each kind, and the reasons."""
    ratios = {name: each["ratios_to_native"] for name, each in document(kinds, refused)["kinds"].items()}

    def spread(values: list[float], ratio: float | None, scale: float = 1e3) -> str:
        middle, least, most = (scale * find(values) for find in (statistics.median, min, max))
        return f"{middle:8.2f} [{least:.2f}, {most:.2f}]" + (f" x{ratio:.1f}" if ratio is not None else "")

    columns = (
        "kind", "to ready, ms", "differ", "to close, ms", "own, ms", "round trip, ms", "machine, MiB", "group, MiB",
    )  # fmt: skip
    widths = (26, 36, 8, 34, 8, 32, 13, 10)
    yield "".join(f"{title:<{width}}" for title, width in zip(columns, widths, strict=True))
    for kind in kinds:
        its = ratios[kind.name]
        cells = (
            kind.name, spread(kind.to_ready, its.get("to_ready")),
            "-" if (differ := starts_differ(kind)) is None else f"{differ:.0%}",
            spread(kind.to_close, its.get("to_close")),
            f"{1e3 * statistics.median(kind.own_cpu):.1f}", spread(kind.trips, its.get("trips")),
            *("-" if each is None else f"{each:.2f}" for each in (kind.machine_mib, kind.group_mib)),
        )  # fmt: skip
        yield "".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
    for name, why in refused.items():
        yield f"{name}: not opened: {why}"


def main() -> int:
    """Run it and print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--trips", type=int, default=200)
    parser.add_argument("--idle", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if min(asked.rounds, asked.trips) < 1 or asked.idle < 2:
        parser.error("at least one round, one round trip and two idle sites")
    try:
        with interruptible(), a_run() as run:
            local = registry.hosts()["local"]
            options = local.options.model_validate({"kind": "local"})
            host = run.stack.enter_context(local.open("local", options, run, ()))
            kinds, refused = open_kinds(run, host)
            measure(kinds, asked.rounds, asked.trips, asked.idle, asked.seed)
    except Interrupted as end:
        return end.exit_code
    if asked.json:
        print(json.dumps(document(kinds, refused), indent=1))
    else:
        print(*table(kinds, refused), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
