"""A finished run as one compressed file for other people: makes it, and reads it again within limits."""

import io
import ipaddress
import json
import lzma
import re
import sqlite3
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from weighbridge.errors import RunDirectoryError
from weighbridge.model.host import HERE, NODE, PLACED_BY
from weighbridge.model.secret import is_ordinary, is_secret_text
from weighbridge.store.database import saving
from weighbridge.store.reader import SECRETS
from weighbridge.store.run import RunStore
from weighbridge.store.safe_folder import SafeFolder
from weighbridge.store.unpacking import MOST_PACKED, MOST_UNPACKED, unpacked

HOME, FOLDER, PATH = "/home/me", "/home/me/project", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Usual values, which replace the values of the user who measured."""
_MACHINE = "machine"
"""Replaces the name of the machine that measured; another host's name is replaced by its name in the study."""
_HOME_OF = r"/home/(?:[^/\s\"':;,)\\]|\\u[0-9a-fA-F]{4})+"
"""A home folder, also in JSON."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
KERNEL_COMMAND_LINE = "kernel command line"
_HOST_KEYS = ("destination", "address", "node")
"""The keys of a host in a study with its address or its name."""
_SQLITE_COUNTERS = (slice(24, 28), slice(92, 100))
"""The bytes of a database that differ between equal contents: counters of changes, and SQLite's version."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A run without everything that identifies its user."""

    data: bytes
    """The database, compressed with xz."""
    replaced: Mapping[str, str]
    """The texts that were replaced wherever they were, with their replacements."""


# -- making one ------------------------------------------------------------------------------------


def kept_file(store: RunStore, *, everything: bool = False, host_names: bool = False) -> KeptFile:
    """Return a run as a file for others, with the tables of this version of Weighbridge.

    Without `everything`, only the first round keeps its readings over time. `host_names` keeps the names and the
    public addresses of hosts. Raises RunDirectoryError if the run cannot be read, or is too large to keep.
    """
    run = store.directory
    with saving(run), closing(store.copy()) as database:
        if not everything:
            database.execute("DELETE FROM series WHERE trial NOT IN (SELECT id FROM trial WHERE block = 1)")
        digests = json.dumps(dict.fromkeys(store.secrets() or (), ""))
        database.execute("UPDATE run SET value = ? WHERE key = ?", (digests, SECRETS))
        _rewrite(database, "fact", "value", _public_words, f"AND key = '{KERNEL_COMMAND_LINE}'")
        replaced = dict(_of_user(store))
        if not host_names:
            database.execute("DELETE FROM fact WHERE key = ?", (PLACED_BY,))
            names = dict(_host_names(store))
            for (scope, name), shown in names.items():
                query = "UPDATE fact SET value = ? WHERE scope = ? AND key = ? AND value = ?"
                database.execute(query, (shown, scope, NODE, name))
            replaced |= {name: shown for (_, name), shown in names.items() if _is_distinctive(name)}
        homes = _replace_everywhere(database, replaced)
        database.execute("VACUUM")
        content = database.serialize()
    if len(content) > MOST_UNPACKED:
        raise RunDirectoryError(f"{run} is too large for a registry: its copy has more than 64 MiB")
    data = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
    if len(data) > MOST_PACKED:
        raise RunDirectoryError(f"{run} is too large for a registry: its packed copy has more than 16 MiB")
    return KeptFile(data, {old: new for old, new in {**replaced, **homes}.items() if old != new})


def raw_archive(run: Path) -> bytes:
    """Return the raw outputs of a run as a tar archive, compressed with xz. Raises RunDirectoryError without any."""
    packed = io.BytesIO()
    if not (run / "raw").is_dir():
        raise RunDirectoryError(f"{run} has no raw outputs: leave out --raw")
    with (
        saving(run), SafeFolder.open(run) as folder, folder.subfolder("raw") as raw,
        tarfile.open(fileobj=packed, mode="w:xz") as tar,
    ):  # fmt: skip
        for name in sorted(raw.names()):
            output = raw.read(name)
            about = tarfile.TarInfo(f"raw/{name}")
            about.size = len(output)
            tar.addfile(about, io.BytesIO(output))
    return packed.getvalue()


def _of_user(store: RunStore) -> Iterator[tuple[str, str]]:
    """Yield the working folders, the PATH and the home folder of the user, with usual values.

    Different folders stay different, because they can hold two versions of a program.
    """
    folders: dict[str, str] = {}
    study = store.study()
    extra = store.study_file().model_extra or {}
    arms = study.arms if study is not None else ()
    userlands = [extra.get("userland"), extra.get("client_userland"), *(arm.userland for arm in arms)]
    for userland in userlands:
        if isinstance(userland, dict):
            variables = userland.get("env")
            env = variables if isinstance(variables, dict) else {}
            if (folder := str(userland.get("folder", ""))).count("/") > 1:
                yield folder, folders.setdefault(folder, f"{FOLDER}-{len(folders) + 1}" if folders else FOLDER)
            for value, usual in ((env.get("PATH"), PATH), (env.get("HOME"), HOME)):
                if isinstance(value, str) and value.count("/") > 1:
                    yield value, usual


def _host_names(store: RunStore) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the scope and the name or address of each host, with the name that replaces it."""
    for scope, key, value, _ in store.facts():
        here, _, name = scope.partition(" ")
        if here == HERE and key in (NODE, "address") and value:
            yield (scope, value), name or _MACHINE
    for name, options in store.study_file().hosts.items():
        for place in (options.get(key) for key in _HOST_KEYS):
            if isinstance(place, str):
                for part in (place, *re.split(r"@|:\d+$", place.removeprefix("ssh://"))):
                    yield (f"{HERE} {name}", part), name


def _is_distinctive(name: str) -> bool:
    """Return whether a text can only be the name of a host: neither an ordinary word nor a private address."""
    try:
        return not ipaddress.ip_address(name).is_private
    except ValueError:
        return not is_ordinary(name)


def _public_words(command_line: str) -> str:
    """Return a kernel's command line without ids of disks, values of secrets, and the words for its first program."""
    options = command_line.partition(" -- ")[0].split(" ")
    words = (f"{word.partition('=')[0]}=..." if is_secret_text(word) else word for word in options)
    return _UUID.sub("UUID", " ".join(words))


def _replace_everywhere(database: sqlite3.Connection, replacements: Mapping[str, str]) -> dict[str, str]:
    """Replace texts in all rows, and all home folders; return the home folders that were replaced."""
    by_form = {form: new for old, new in replacements.items() for form in (old, json.dumps(old)[1:-1])}
    longest_first = sorted(by_form, key=len, reverse=True)
    words = "|".join([*(rf"(?<![\w]){re.escape(form)}(?![\w-])" for form in longest_first), _HOME_OF])
    pattern, homes = re.compile(words), dict[str, str]()

    def new(match: re.Match[str]) -> str:
        if (shown := by_form.get(match[0])) is not None:
            return shown
        homes[match[0]] = HOME
        return HOME

    replaced = lru_cache(maxsize=2**12)(lambda text: pattern.sub(new, text))
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    for (table,) in tables.fetchall():
        for _, column, *_ in database.execute(f"PRAGMA table_info({_quoted(table)})").fetchall():
            _rewrite(database, table, column, replaced)
    return homes


def _rewrite(
    database: sqlite3.Connection, table: str, column: str, change: Callable[[str], str], which: str = ""
) -> None:
    """Replace each text of a column by the result of ``change``."""
    database.create_function("changed", 1, change, deterministic=True)
    name = _quoted(column)
    database.execute(
        f"UPDATE {_quoted(table)} SET {name} = changed({name}) "  # noqa: S608 - quoted, and fixed words
        f"WHERE typeof({name}) = 'text' {which} AND changed({name}) != {name}"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# -- reading one -----------------------------------------------------------------------------------


@contextmanager
def opened(data: bytes, where: str) -> Iterator[RunStore]:
    """Yield the run in a kept file.

    Raises RunDirectoryError, whose sentence names ``where``, if the file is damaged, too large or not a run.
    """
    content = unpacked(data, where)
    try:
        with RunStore(Path(where), content=content) as store:
            yield store
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise RunDirectoryError(f"{where} is damaged: it has a value that Weighbridge never writes") from error


def is_same_run(one: bytes, other: bytes) -> bool:
    """Return whether two databases have the same content."""
    contents = bytearray(one), bytearray(other)
    for content in contents:
        for counters in _SQLITE_COUNTERS:
            content[counters] = bytes(len(content[counters]))
    return contents[0] == contents[1]
