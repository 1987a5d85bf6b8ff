"""The completion of words in a shell, from the names that the program knows."""

from weighbridge import registry
from weighbridge.study.source import bundled


def complete_study(incomplete: str) -> list[str]:
    """Return the bundled studies that begin with a word. For other words, the shell completes file names."""
    return sorted(name for name in bundled() if name.startswith(incomplete))


def complete_environments(incomplete: str) -> list[str]:
    """Return the ways to continue the comma-separated list of names after `weigh --in`."""
    before, comma, last = incomplete.rpartition(",")
    names = {name for plugin in registry.environments().values() for name in plugin.weighed_in()}
    return sorted(f"{before}{comma}{name}" for name in names - {*before.split(",")} if name.startswith(last))
