"""What a shell offers for a word that is being typed: names that the program knows."""


def complete_study(incomplete: str) -> list[str]:
    """Return the bundled studies that begin so; of another one the shell completes the path of a file."""
    from weighbridge.study.source import bundled

    return sorted(name for name in bundled() if name.startswith(incomplete))


def complete_environments(incomplete: str) -> list[str]:
    """Return the names of `weigh --in` with which a list of names, parted by commas, may go on."""
    from weighbridge import registry

    before, comma, last = incomplete.rpartition(",")
    names = {name for plugin in registry.environments().values() for name in plugin.weighed_in()}
    return sorted(f"{before}{comma}{name}" for name in names - {*before.split(",")} if name.startswith(last))
