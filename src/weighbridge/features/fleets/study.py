"""A fleet's study: its number of machines, and its text with other machines instead of its hosts."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from weighbridge.errors import StudyError
from weighbridge.model.study import Study
from weighbridge.study.loader import check
from weighbridge.study.source import parse, written

_SEEDS = 2**31


def hosts_of(study: Study) -> tuple[str, ...]:
    """Return the names of the hosts that machines replace: one, or the client's and the server's.

    Raises StudyError for more hosts, since a fleet runs studies of single machines or pairs.
    """
    server = study.server_host
    others = [name for name in dict.fromkeys((*study.client_hosts, *study.storage_hosts)) if name != server]
    if len(others) > 1:
        names = ", ".join((*others, server))
        raise StudyError(
            f"{study.file.study} uses {len(others) + 1} hosts ({names}), but a fleet can only run studies with one "
            "or two hosts"
        )
    return (*others, server)


def own_host(study: Study) -> Mapping[str, Any]:
    """Return the study's options of the host that machines replace; of two, the server's."""
    hosts = parse(study.text, study.file.study).data.get("hosts")
    host = hosts.get(study.server_host) if isinstance(hosts, Mapping) else None
    return host if isinstance(host, Mapping) else {}


def with_own(own: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any]:
    """Return a machine's host with further options of the study's own host, if it is of the same kind."""
    return {**(own if own.get("kind") == host["kind"] else {}), **host}


def text_on(study: Study, hosts: Sequence[Mapping[str, Any]], unit: str) -> str:
    """Return the study's text with these hosts, in the order of `hosts_of`, and the unit's own seed.

    Other options of the study's host of the same kind stay (how a node gets images). With one seed for all, each
    machine would have its trials in the same order, whose effect would not average out.
    """
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    data = yaml.load(study.text)
    entries = data.get("hosts")
    if not isinstance(entries, dict):
        entries = data["hosts"] = {}
    for name, host in zip(hosts_of(study), hosts, strict=True):
        entries[name] = with_own(entries.get(name) or {}, host)
    data["seed"] = unit_seed(study.file.seed, unit)
    return written(data)


def unit_seed(seed: int, unit: str) -> int:
    """Return the seed of a unit's order of trials."""
    return int.from_bytes(sha256(f"{seed} {unit}".encode()).digest()[:8]) % _SEEDS


def study_on(study: Study, hosts: Sequence[Mapping[str, Any]], unit: str) -> Study:
    """Return the checked study on these machines. Raises StudyError if it cannot use such hosts."""
    again = check(parse(text_on(study, hosts, unit), f"{study.file.study} on {unit}"))
    return again.model_copy(update={"compose": study.compose})
