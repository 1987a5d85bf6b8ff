"""Trials in an open site: what the wrapper denies, and whether it confines programs as its preset claims."""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from weighbridge.environments.wrapper.preset import Denial, Network, Places, Preset
from weighbridge.launcher import build
from weighbridge.linux.confinement import confinement_of
from weighbridge.model.command import Command
from weighbridge.model.facts import OUTSIDE_CONNECTIONS, OUTSIDE_WRITES
from weighbridge.model.host import Host, RunContext
from weighbridge.model.site import Site

OUTSIDE = "/run/weighbridge-outside"
"""A file that native programs can create, and that is outside of the policy of every preset."""
READABLE = "/etc/passwd"
"""A file that every user can read."""
TRIAL = ".weighbridge-trial"
ALLOWED = "allowed"
_REFUSED = "refused: {}"
_HOME = "127.0.0.1"
_LISTENS_S, _TRIAL_S = 5.0, 10


@dataclass(frozen=True, slots=True)
class Trials:
    """The answers to all trials in a site, as facts, and whether programs can read and write inside of the policy.

    ``read`` and ``write`` are the errors, or "".
    """

    facts: Mapping[str, str]
    read: str = ""
    write: str = ""


def tried(site: Site, run: RunContext, places: Places) -> Trials:
    """Try what the kernel does not show, and read what it shows."""
    outside = _error_of_writing(site, OUTSIDE, places)
    return Trials(
        {
            **confinement_of(site),
            OUTSIDE_WRITES: _REFUSED.format(outside) if outside else ALLOWED,
            OUTSIDE_CONNECTIONS: _connected(site, run, places.launcher),
        },
        read=_error_of_reading(site),
        write=_error_of_writing(site, str(PurePosixPath(places.folder) / TRIAL), places),
    )


def unconfined(title: str, preset: Preset, network: Network, without: frozenset[str], trials: Trials) -> str:
    """Return the sentence about the first claim of a preset that does not hold, or "" if all hold."""
    return next(_broken(title, preset, network, without, trials), "")


def _broken(title: str, preset: Preset, network: Network, without: frozenset[str], trials: Trials) -> Iterator[str]:
    for error, what in ((trials.read, f"read {READABLE}"), (trials.write, "write to their folder")):
        if error:
            yield f"{title} does not let its programs {what} ({error}), but its preset claims that it does"
    for fact, pattern in preset.claims(network, without):
        if re.search(pattern, value := trials.facts.get(fact, "")) is None:
            yield f"{title} does not confine its programs as its preset claims: {fact}: {value or 'unreadable'}"
    tried_here: Mapping[Denial, tuple[str, str, bool]] = {
        "write": (OUTSIDE_WRITES, f"lets its programs write to {OUTSIDE}", True),
        "connect": (OUTSIDE_CONNECTIONS, "lets its programs connect to a program outside", network == "none"),
    }
    for denial, (fact, wrong, claimed) in tried_here.items():
        if claimed and denial in preset.denies and trials.facts.get(fact) == ALLOWED:
            yield f"{title} {wrong}, but its preset claims that it denies this"


def _error_of_reading(site: Site) -> str:
    try:
        site.read(READABLE)
    except FileNotFoundError:
        return ""  # a root folder without users
    except OSError as error:
        return _words(error)
    return ""


def _error_of_writing(site: Site, path: str, places: Places) -> str:
    """Return why programs cannot create a file, or "" if they can. The file is removed again."""
    try:
        site.put(path, b"")
    except OSError as error:
        return _words(error)
    site.run(Command((places.launcher, "remove", path), _TRIAL_S))
    return ""


def _words(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _connected(site: Site, run: RunContext, launcher: str) -> str:
    """Return the answer to a connection from the site to a program of its host, on the loopback interface."""
    host, port = site.host, str(site.host.free_ports())
    outside = host.program(build.ensure(run.cache, run.say))
    # an exchange of one byte shows that it listens, and leaves it listening, because it waits for two
    listener = host.start(_probe(outside, "listen", port, 2))
    try:
        if not _listens(host, _probe(outside, "connect", port, 1)):
            return ""
        completed = site.run(_probe(launcher, "connect", port, 2))
    finally:
        listener.stop()
    return ALLOWED if completed.returncode == 0 else _REFUSED.format(_last(completed.last_words))


def _probe(launcher: str, role: str, port: str, size: int) -> Command:
    return Command((launcher, "probe-connection", role, "tcp", _HOME, port, str(_TRIAL_S), str(size)), _TRIAL_S + 5)


def _listens(host: Host, connect: Command) -> bool:
    deadline = time.monotonic() + _LISTENS_S
    while host.run(connect).returncode != 0:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _last(words: str) -> str:
    """Return the reason in the last line of a probe: ``connect: Connection refused``."""
    return words.rpartition(": ")[2] or "no answer"
