"""Profiles: named changes to a study, merged into its text before it is run."""

import copy
from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from functools import cache
from typing import Any

from weighbridge import registry
from weighbridge.errors import StudyError
from weighbridge.model.quantity import RATE_UNITS, parse_quantity
from weighbridge.model.spelling import nearest
from weighbridge.model.study import Study
from weighbridge.study.compose import Normalised
from weighbridge.study.loader import check
from weighbridge.study.source import Origin, Source, StudyPlace, plain, read, written

STANDARD = "standard"
"""The name of a study as it stands, unless it has a profile of this name."""
_OWN = ("study", "profiles")
"""The keys that a profile cannot change: the name identifies a run, and a run has no profiles."""


def load(
    study: str | Origin,
    profile: str | None = None,
    link: str | None = None,
    normalised: Normalised | None = None,
) -> Study:
    """Return a bundled study, or the study in a file, with a profile and with ``link`` (a rate) for testbed hosts.

    The study's text is the merged one, without its profiles. ``normalised`` reads a Compose file. StudyError lists
    every mistake, those in other profiles too, with the line in the study's own file.
    """
    source = read(study)
    normalised = cache(normalised) if normalised is not None else None  # for all of its profiles
    profiles = source.data.get("profiles")
    if profiles is None and profile in (None, STANDARD) and link is None:
        return check(source, normalised)
    named: MutableMapping[str, Any] = profiles if isinstance(profiles, MutableMapping) else {}
    if profile is not None and profile not in (*named, STANDARD):
        choices = ", ".join(dict.fromkeys((STANDARD, *map(str, named))))
        hint = nearest(profile, (STANDARD, *named)) or f". Known profiles: {choices}"
        raise StudyError(f"{source.where(('profiles',))}: there is no profile '{plain(profile, 60)}'{hint}")
    check(source, normalised)  # the study itself first: a profile would repeat its mistakes
    written_profile = (
        profile if link is None else None
    )  # of the others only the mistakes: their text would take longer
    studies = {
        name: check(_merged(source, str(name), with_text=name == written_profile), normalised)
        for name in sorted(named, key=lambda name: name == written_profile)  # last: its secrets are kept
    }
    if written_profile in studies:
        return studies[written_profile]
    chosen = _merged(source, profile if profile in named else None, with_text=link is None)
    return check(chosen if link is None else _linked(chosen, link), normalised)


def load_each(study: str | Origin) -> Iterator[tuple[str, Study]]:
    """Yield a study as it stands and with each of its profiles, with the name that ``--profile`` accepts for it.

    Each is checked once, and its text is its title alone. StudyError lists the mistakes of the first that is wrong.
    """
    source = read(study)
    for name in profiles_of(study):
        yield name, check(_merged(source, name if name in source.data.get("profiles", ()) else None, with_text=False))


def profiles_of(study: str | Origin) -> tuple[str, ...]:
    """Return the names that ``--profile`` accepts for a study. The unchanged study is first."""
    profiles = read(study).data.get("profiles")
    return tuple(dict.fromkeys((STANDARD, *map(str, profiles if isinstance(profiles, MutableMapping) else ()))))


def _merged(source: Source, profile: str | None, *, with_text: bool) -> Source:
    """Return the study with a profile merged into it. Its data keeps the lines of the study's file, for messages.

    Without ``with_text`` its text is the title alone.
    """
    data = copy.deepcopy(source.data)
    profiles = data.pop("profiles", {})
    title = f"{plain(data.get('study'), 60)} as it stands"
    if profile is not None:
        changes = profiles[profile]
        if not isinstance(changes, MutableMapping):
            problem = f"profile '{plain(profile, 60)}': write keys of the study with their values"
            raise StudyError(f"{source.where(('profiles', profile))}: {problem}")
        for key in _OWN:
            if key in changes:
                raise StudyError(f"{source.where(('profiles', profile, key))}: a profile cannot change '{key}'")
        _merge(data, changes, (), lambda place: source.where(("profiles", profile, *place)))
        title = f"{plain(data.get('study'), 60)}, profile '{plain(profile, 60)}'"
    return _written(source, data, title) if with_text else replace(source, text=f"# {title}\n", data=data)


def _merge(base: Any, changes: Any, place: StudyPlace, where: Any) -> None:
    """Merge mappings in depth. Other values replace the old value, and null removes it.

    ``repetitions`` is replaced whole (fixed and adaptive ones do not mix), and so is an entry of another ``kind``.
    """
    for key, value in changes.items():
        key_place = (*place, key)
        if value is None:
            if key not in base:
                problem = f"there is no '{plain(key, 60)}' to remove{nearest(key, base)}"
                raise StudyError(f"{where(key_place)}: {problem}")
            del base[key]
            continue
        inner = base.get(key)
        both = isinstance(value, MutableMapping) and isinstance(inner, MutableMapping)
        if both and key_place != ("repetitions",) and value.get("kind", inner.get("kind")) == inner.get("kind"):
            base[key] = copy.deepcopy(inner)  # an alias of it elsewhere stays as it is
            _merge(base[key], value, key_place, where)
        else:
            base[key] = copy.deepcopy(value)
        base.lc.data[key] = changes.lc.data[key]


def _linked(source: Source, link: str) -> Source:
    """Return the study with ``link`` as the rate of every testbed host's cable."""
    try:
        parse_quantity(link, RATE_UNITS, "a rate")
    except ValueError as error:
        raise StudyError(f"--link: {plain(error)}") from None
    data = copy.deepcopy(source.data)
    hosts = list(_linkable_hosts(data))
    if not hosts:
        problem = f"--link: {plain(data.get('study'), 60)} has no testbed hosts. Remove --link"
        raise StudyError(problem)
    for host in hosts:
        host["link"] = link
    return _written(source, data, f"{source.text.splitlines()[0].removeprefix('# ')}, link {link}")


def _linkable_hosts(data: Any) -> Iterator[Any]:
    """Yield the hosts that have an option ``link``."""
    hosts, kinds = data.get("hosts"), registry.hosts()
    for host in hosts.values() if isinstance(hosts, MutableMapping) else ():
        kind = kinds.get(str(host.get("kind"))) if isinstance(host, MutableMapping) else None
        if kind is not None and "link" in kind.options.model_fields:
            yield host


def _written(source: Source, data: Any, title: str) -> Source:
    """Return the source with new data and text. The text begins with a title."""
    return replace(source, text=f"# {title}\n{written(data)}", data=data)
