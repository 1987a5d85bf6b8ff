"""The installation of programs by each distribution: the table ``packages.txt`` and the sentences built from it.

Other modules only name programs; this one knows their packages and the commands that install them.
"""

import functools
import os
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weighbridge.linux import process
from weighbridge.model.command import Command

if TYPE_CHECKING:
    from weighbridge.model.host import Host

TABLE = Path(__file__).with_name("packages.txt")
OS_RELEASE = (Path("/etc/os-release"), Path("/usr/lib/os-release"))
"""The files that identify the distribution; the first one that exists counts (os-release(5))."""
_MISSING = 'PATH="$PATH:/usr/sbin:/sbin"; for each; do command -v "$each" >/dev/null || echo "$each"; done'
_DISTRIBUTION, _INSTALL, _NONE, _ELSEWHERE = "distribution", "install", "-", "@"


@dataclass(frozen=True, slots=True)
class Distribution:
    """A family of distributions with one package manager.

    ``name`` is the value of ID or ID_LIKE in its os-release. ``install`` are the words of the command that installs
    packages. ``packages`` maps a program or file to the words of its cell in the table.
    """

    name: str
    install: tuple[str, ...]
    packages: Mapping[str, tuple[str, ...]]


def distributions(table: str) -> dict[str, Distribution]:
    """Return the distributions in a table's text by name. Raises ValueError for a line of another length."""
    lines = [line.split() for line in table.splitlines() if line.strip() and not line.startswith("#")]
    cells = {line[0]: [tuple(cell.split(",")) for cell in line[1:]] for line in lines}
    names = [cell[0] for cell in cells.pop(_DISTRIBUTION)]
    if wrong := [program for program, row in cells.items() if len(row) != len(names)]:
        raise ValueError(f"the table of packages does not have {len(names)} columns for {', '.join(wrong)}")
    commands = cells.pop(_INSTALL)
    return {
        name: Distribution(name, commands[column], {program: row[column] for program, row in cells.items()})
        for column, name in enumerate(names)
    }


@functools.cache
def _read_table() -> dict[str, Distribution]:
    return distributions(TABLE.read_text())


def distribution_of(os_release: str) -> Distribution | None:
    """Return the distribution of an os-release text, by ID, else by ID_LIKE; None if it is unknown."""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    names = [word for key in ("ID", "ID_LIKE") for word in " ".join(_unquote(fields.get(key, ""))).split()]
    return next((_read_table()[name] for name in names if name in _read_table()), None)


def _unquote(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:  # a quote that does not end
        return []


def this_distribution() -> Distribution | None:
    """Return this machine's distribution; None if it is unknown."""
    for file in OS_RELEASE:
        try:
            return distribution_of(file.read_text(errors="replace"))
        except OSError:
            continue
    return None


def distribution_on(host: "Host") -> Distribution | None:
    """Return the distribution of a host by its os-release; None if it is unreadable or unknown."""
    for file in OS_RELEASE:
        try:
            return distribution_of(host.read(str(file)).decode(errors="replace"))
        except OSError:
            continue
    return None


def debian_package(program: str) -> str:
    """Return the Debian package of a program (by name or path), from the table or dpkg; "" if unknown."""
    cell = _read_table()["debian"].packages.get(program, (_NONE,))
    if cell != (_NONE,) and _ELSEWHERE not in cell[0]:
        return cell[0]
    program_path = process.which(program)
    for path in dict.fromkeys((program_path, os.path.realpath(program_path)) if program_path else ()):
        for place in (path, path.removeprefix("/usr")):
            if owner := process.output(("dpkg-query", "--search", place)):
                return owner.partition(":")[0].split(",")[0].strip()
    return ""


def install_here(programs: Iterable[str], otherwise: Mapping[str, str] | None = None) -> str:
    """Return how to install these programs or files on this machine: "apt-get install docker.io".

    ``otherwise`` has commands for programs that no distribution is known to have.
    """
    return install(programs, this_distribution(), otherwise)


def missing_on(host: "Host", programs: Collection[str]) -> str:
    """Return that these programs are missing on another machine, in words that go into a sentence, or ""."""
    if not programs or host.this_machine:
        return ""
    missing = host.run(Command(("sh", "-c", _MISSING, "sh", *programs))).text.split()
    names = " and ".join(f"'{program}'" for program in missing)
    plural = len(missing) > 1
    return f"the program{'s' * plural} {names} {'are' if plural else 'is'} not installed" if missing else ""


def install_on(host: "Host", programs: Iterable[str]) -> str:
    """Return how to install these programs or files on a host."""
    return install(programs, distribution_on(host))


def install(
    programs: Iterable[str], distribution: Distribution | None, otherwise: Mapping[str, str] | None = None
) -> str:
    """Return how to install these programs or files: a command, and a clause for programs without a package.

    If the distribution (None) or a program is unknown, the text names the program instead of a package.
    """
    packages: list[str] = []
    elsewhere: dict[str, list[str]] = {}
    none: list[str] = []
    unknown: list[str] = []
    commands: list[str] = []
    for program in dict.fromkeys(programs):
        cell = distribution.packages.get(program) if distribution else None
        if cell is None and otherwise and program in otherwise:
            commands.append(otherwise[program])
        elif cell is None:
            unknown.append(program)
        elif cell == (_NONE,):
            none.append(program)
        elif _ELSEWHERE in cell[0]:
            package, where = cell[0].split(_ELSEWHERE)
            elsewhere.setdefault(where.replace("_", " "), []).append(package)
        else:
            packages += cell
    command = [" ".join((*distribution.install, *dict.fromkeys(packages)))] if distribution and packages else []
    external = [f"install {_and(dict.fromkeys(names))} from {where}" for where, names in elsewhere.items()]
    named = [f"install {_and(unknown)} with your package manager"] if unknown else []
    absent = [f"install {_and(none)} yourself (this distribution has no package)"] if none else []
    return "; ".join((*command, *external, *named, *dict.fromkeys(commands), *absent))


def join_installs(commands: Iterable[str]) -> str:
    """Return one command of this machine's package manager for the packages of several; "" if there are none.

    ``commands`` are results of `install_here`; their other parts are ignored.
    """
    distribution = this_distribution()
    if distribution is None:
        return ""
    begin = f"{' '.join(distribution.install)} "
    parts = [part for command in commands for part in command.split("; ") if part.startswith(begin)]
    packages = dict.fromkeys(name for part in parts for name in part.removeprefix(begin).split())
    return begin + " ".join(packages) if packages else ""


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)
