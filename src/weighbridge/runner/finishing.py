"""What workloads run in their sites when a run ends, however it does: the counterpart of what they prepared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.model.command import Command
from weighbridge.model.site import Site
from weighbridge.runner.outputs import failure_beside
from weighbridge.store.run import RunStore

SCOPE = "cleanup"
"""The scope of facts about those that failed: "ENVIRONMENT/ROLE" -> why."""


@dataclass(frozen=True, slots=True)
class Finish:
    """A command for the end of one site, and the files with their modes that it may read there.

    ``role``: whose site it is, with its number where there are several.
    """

    role: str
    site: Site
    command: Command
    files: Mapping[str, bytes]
    modes: Mapping[str, int]
    given: str
    """A digest of the files."""


AtEnd = Callable[[Finish], None]


@dataclass(slots=True)
class Finishing:
    """What is still to be run in open sites: in each of them once, what came last first."""

    _due: dict[tuple[str, ...], tuple[str, Finish]] = field(default_factory=dict)

    def of(self, environment: str) -> AtEnd:
        """What takes those of the sites of an environment."""
        return partial(self._note, environment)

    def _note(self, environment: str, finish: Finish) -> None:
        once = (finish.site.name, finish.given, *finish.command.argv)
        self._due.setdefault(once, (f"{environment}/{finish.role}", finish))

    def run(self, store: RunStore, say: Callable[[str], None]) -> None:
        """Run all, before the sites are closed. One that fails is told and kept with the run, and fails nothing."""
        failed: dict[str, list[str]] = {}
        for place, finish in reversed(self._due.values()):
            if why := _failure(finish):
                say(f"{place}: the cleanup failed: {why}; all that was measured is kept")
                failed.setdefault(place, []).append(why)
        self._due.clear()
        if failed:
            store.add_facts(SCOPE, {place: "; ".join(why) for place, why in failed.items()})


def _failure(finish: Finish) -> str:
    """Run it in its site; why it failed, if it did."""
    try:
        finish.site.thaw()
        for path, data in finish.files.items():  # another workload may have written there since
            finish.site.put(path, data, finish.modes[path])
        completed = finish.site.run(finish.command)
    except (EnvironmentLost, Unavailable, OSError) as error:
        return str(error)
    return failure_beside(completed) if completed.returncode != 0 or completed.timed_out else ""
