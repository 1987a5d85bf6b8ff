"""Trials in an open site: what the wrapper denies, and whether it confines programs as its preset claims."""

import errno
import os
import re
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from weighbridge.environments.wrapper.preset import Network, Places, Preset
from weighbridge.launcher import build
from weighbridge.linux.confinement import confinement_of
from weighbridge.model.command import Command
from weighbridge.model.facts import OUTSIDE_CONNECTIONS, OUTSIDE_WRITES, SHARED_MEMORY_WRITES
from weighbridge.model.host import Host, RunContext
from weighbridge.model.site import Site

OUTSIDE = "/run/weighbridge-outside"
"""A file that native programs can create, and that is outside of the policy of every preset."""
READABLE = "/etc/passwd"
"""A file that every user can read."""
TRIAL = ".weighbridge-trial"
ALLOWED = "allowed"
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - of the site, which has its own
_REFUSED = "refused: {}"
_WRITE_DENIALS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""The errors of rules for files and of read-only mounts. With others, the trial proves nothing."""
_ABSENT = (errno.ENOENT,)
"""The error of a folder that the wrapper hides."""
_CONNECT_DENIALS = frozenset({
    *(os.strerror(error) for error in (
        errno.EACCES, errno.EPERM,  # rules of Landlock, filters of system calls
        errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL,  # a network without interfaces
        errno.ECONNREFUSED,  # a network of its own: outside, the listener answers before and after the trial
    )),
    "Network unreachable", "Address not available",  # musl's words for two of them
})  # fmt: skip
_HOME = "127.0.0.1"
_LISTENS_S, _TRIAL_S = 5.0, 10
_TRIED = (OUTSIDE_WRITES, SHARED_MEMORY_WRITES, OUTSIDE_CONNECTIONS)
_NO_RESULT = 1
"""The exit code of a probe that prints why it has no result (launcher/source/probe.c)."""


@dataclass(frozen=True, slots=True)
class Trials:
    """The answers to all trials in a site, as facts, and whether programs can read and write inside of the policy.

    ``read`` and ``write`` are the errors, or "". ``untried`` has the reasons why a trial proves nothing, by fact.
    """

    facts: Mapping[str, str]
    read: str = ""
    write: str = ""
    untried: Mapping[str, str] = field(default_factory=dict)


def tried(site: Site, run: RunContext, places: Places) -> Trials:
    """Try what the kernel does not show, and read what it shows."""
    hidden = f".weighbridge-{secrets.token_hex(8)}"  # a wrapper cannot know it
    run_folder = PurePosixPath(OUTSIDE).parent
    answers = {
        OUTSIDE_WRITES: _written(
            site, {OUTSIDE: (), str(run_folder / hidden): (), f"{places.outside}/{hidden}": _ABSENT}, places
        ),
        SHARED_MEMORY_WRITES: _written(site, {f"{SHARED_MEMORY}/{hidden}": _ABSENT}, places),
        OUTSIDE_CONNECTIONS: _connected(site, run, places.launcher),
    }
    error = _error_of_writing(site, str(PurePosixPath(places.folder) / TRIAL), places)
    return Trials(
        {**confinement_of(site), **{fact: each.fact for fact, each in answers.items() if each.fact}},
        read=_error_of_reading(site),
        write=_words(error) if error else "",
        untried={fact: each.untried for fact, each in answers.items() if each.untried},
    )


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to a trial as a fact, or the reason why it proves nothing."""

    fact: str = ""
    untried: str = ""


def read_again(site: Site, trials: Trials) -> Trials:
    """Return the answers to trials in another site, with the confinement in the /proc of this one."""
    answers = {fact: value for fact, value in trials.facts.items() if fact in _TRIED}
    return replace(trials, facts={**confinement_of(site), **answers})


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
    denied = preset.denied(without)
    claimed = {
        OUTSIDE_WRITES: (f"write to {PurePosixPath(OUTSIDE).parent}", "write" in denied),
        SHARED_MEMORY_WRITES: (
            f"write to {SHARED_MEMORY}",
            "write" in denied and "shared memory" not in preset.lacks,
        ),
        OUTSIDE_CONNECTIONS: ("connect to a program outside", "connect" in denied and network == "none"),
    }
    for fact, (what, claims) in claimed.items():
        if claims and trials.facts.get(fact) == ALLOWED:
            yield f"{title} lets its programs {what}, but its preset claims that it denies this"
        if claims and fact not in trials.facts:
            why = trials.untried.get(fact, "no answer")
            yield f"{title} claims that its programs cannot {what}, which could not be tried: {why}"


def _error_of_reading(site: Site) -> str:
    try:
        site.read(READABLE)
    except FileNotFoundError:
        return ""  # a root folder without users
    except OSError as error:
        return _words(error)
    return ""


def _written(site: Site, paths: Mapping[str, Collection[int]], places: Places) -> _Answer:
    """Return whether programs can create one of the files. Each path has errors that are denials there, too."""
    errors = {path: _error_of_writing(site, path, places) for path in paths}
    if None in errors.values():
        return _Answer(ALLOWED)
    for path, error in errors.items():
        if error is not None and error.errno not in {*_WRITE_DENIALS, *paths[path]}:
            return _Answer(untried=f"{PurePosixPath(path).parent}: {_words(error)}")
    return _Answer(_REFUSED.format(next(_words(error) for error in errors.values() if error is not None)))


def _error_of_writing(site: Site, path: str, places: Places) -> OSError | None:
    """Return why programs cannot create a file, or None if they can. The file is removed again."""
    try:
        site.put(path, b"")
    except OSError as error:
        return error
    site.run(Command((places.launcher, "remove", path), _TRIAL_S))
    return None


def _words(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _connected(site: Site, run: RunContext, launcher: str) -> _Answer:
    """Return the answer to a connection from the site to a program of its host, on the loopback interface."""
    host, port = site.host, str(site.host.free_ports())
    outside = host.program(build.ensure(run.cache, run.say))
    # an exchange of one byte shows that it listens, and leaves it listening, because it waits for two
    listener = host.start(_probe(outside, "listen", port, 2))
    try:
        if not _listens(host, _probe(outside, "connect", port, 1)):
            return _Answer(untried="the listener outside does not answer")
        completed = site.run(_probe(launcher, "connect", port, 2))
        if completed.returncode == 0:
            return _Answer(ALLOWED)
        words = _last(completed.last_words)
        if completed.timed_out or completed.returncode != _NO_RESULT or words not in _CONNECT_DENIALS:
            return _Answer(untried=f"the probe ended with code {completed.returncode}: {completed.last_words}")
        if not _listens(host, _probe(outside, "connect", port, 1)):
            return _Answer(untried="the listener outside does not answer any more")
    finally:
        listener.stop()
    return _Answer(_REFUSED.format(words))


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
