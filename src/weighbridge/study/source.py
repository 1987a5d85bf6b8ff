"""Reads and parses study files, and keeps the line of every key."""

import io
import itertools
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from weighbridge.errors import StudyError
from weighbridge.model.spelling import nearest
from weighbridge.study.indentation import wrong_indentation

LARGEST = 256 * 2**10
"""Bytes; a study file is a page or two, so anything larger is a mistake."""
_MOST = (20_000, 20)
"""The largest number of values with all aliases resolved, and the deepest nesting. No study comes near these."""

StudyPlace = tuple[str | int, ...]


class OriginKind(StrEnum):
    """What holds a study."""

    BUNDLED = "bundled study"
    FILE = "study file"
    RUN = "run directory"
    FLEET = "fleet folder"


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a study. ``name`` is the name of a bundled study; otherwise it is a path."""

    kind: OriginKind
    name: str

    @property
    def is_bundled(self) -> bool:
        """Whether the study is part of Weighbridge. Any other study can be a stranger's."""
        return self.kind is OriginKind.BUNDLED


@dataclass(frozen=True)
class Source:
    """A parsed study file: its name for messages, its text, and its data with line numbers."""

    name: str
    text: str
    data: Any

    def where(self, place: Sequence[str | int]) -> str:
        """Return ``file:line`` of the deepest part of ``place`` that is in the file."""
        return f"{self.name}:{self.line(place)}"

    def line(self, place: Sequence[str | int]) -> int:
        """Return the line of the deepest part of ``place`` that is in the file; the first line is 1."""
        node, line = self.data, 0
        for key in place:
            try:
                line = node.lc.data[key][0]
                node = node[key]
            except (AttributeError, KeyError, IndexError, TypeError):
                break
        return line + 1


def bundled() -> dict[str, str]:
    """Return the texts of the bundled studies by name."""
    return dict(_bundled())


@cache
def _bundled() -> dict[str, str]:
    folder = resources.files("weighbridge.study") / "bundled"
    files = (entry for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return {file.name.removesuffix(".yaml"): file.read_text() for file in sorted(files, key=lambda f: f.name)}


@cache
def _bundled_source(name: str) -> Source:
    """Return a parsed bundled study. The data of a source never changes, so it is parsed once."""
    return parse(_bundled()[name], f"{name} (bundled)")


def bundled_study(name: str) -> Origin:
    """Return the origin of a bundled study, whatever files there are."""
    return Origin(OriginKind.BUNDLED, name)


def named_study(name: str) -> Origin:
    """Return the origin of the study that a user names. A file hides the bundled study of the same name."""
    is_bundled = name in bundled() and not Path(name).is_file()
    return Origin(OriginKind.BUNDLED if is_bundled else OriginKind.FILE, name)


def read(study: str | Origin) -> Source:
    """Return the source of a bundled study or of a study file. StudyError says what is wrong."""
    origin = named_study(study) if isinstance(study, str) else study
    if origin.is_bundled:
        return _bundled_source(origin.name)
    path = Path(origin.name)
    if not path.suffix and not _exists(path):
        hint = (
            nearest(path, bundled()) or ". Give the path of a YAML file, or a name that 'weighbridge studies' lists"
        )
        raise StudyError(f"there is neither a file nor a bundled study '{plain(path)}'{hint}")
    return parse(_text(path), str(path))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _text(path: Path) -> str:
    if path.is_dir():
        raise StudyError(f"{path} is a directory. Give the path of a study file")
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise StudyError(
                f"{path} has {size / 2**10:.0f} KiB, but a study file must have at most {LARGEST // 2**10} KiB"
            )
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)  # a device or a pipe has no size
        if len(data) > LARGEST:
            raise StudyError(f"{path} has more than {LARGEST // 2**10} KiB, so it is not a study file")
        text = data.decode()
    except FileNotFoundError:
        raise StudyError(f"there is no file {path}") from None
    except UnicodeDecodeError:
        raise StudyError(f"{path} is not text. A study file is YAML in UTF-8") from None
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror}") from None
    if "\0" in text:
        raise StudyError(f"{path} is not text. A study file is YAML in UTF-8")
    return text


def parse(text: str, name: str) -> Source:
    """Parse YAML 1.2; StudyError names file and line."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError

    node = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an anchor that is used twice is allowed
            yaml = YAML(typ="rt")
            node = yaml.compose(text)  # before anything is made of it: aliases can multiply without end
            excess = _excess(node) if node is not None else None
            data = yaml.constructor.construct_document(node) if node is not None and excess is None else None
    except DuplicateKeyError as error:
        raise StudyError(_twice(node, name, error)) from None
    except MarkedYAMLError as error:
        mark, problem = error.problem_mark, plain(error.problem or error)
        wrong = wrong_indentation(text, problem, mark.line, mark.column) if mark else None
        message = wrong or f"this is not YAML ({problem})"
        raise StudyError(f"{name}:{mark.line + 1 if mark else 1}: {message}") from None
    except Exception as error:  # the parser itself stumbles over some texts: assertions, attributes, recursion
        raise StudyError(f"{name}:1: this is not YAML ({plain(error) or type(error).__name__})") from None
    if excess is not None:
        raise StudyError(f"{name}:{excess[0] + 1}: {excess[1]} is nested too deeply, or repeats too many aliases")
    if not isinstance(data, CommentedMap):
        raise StudyError(f"{name}:1: a study file has 'key: value' lines, and starts with 'study: NAME'")
    return Source(name, text, data)


def written(data: Any) -> str:
    """Return the data of a study as YAML, with its comments and line breaks."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 10_000
    text = io.StringIO()
    yaml.dump(data, text)
    return text.getvalue()


def _twice(top: Any, name: str, error: Any) -> str:
    """Return the message about a key that appears twice, with the lines."""
    key, line = re.search(r'duplicate key "(.*?)" with', str(error.problem), re.DOTALL), error.problem_mark.line
    waiting, visited = [top], set()
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in visited or not isinstance(node.value, list):
            continue
        visited.add(id(node))
        waiting += itertools.chain(*node.value) if node.id == "mapping" else node.value
        keys = [key for key, _ in node.value] if node.id == "mapping" else []
        for at, second in enumerate(keys):
            if second.start_mark.line != line or second.id != "scalar":
                continue
            for first in keys[:at]:
                if first.id == "scalar" and first.value == second.value:
                    lines = f"lines {first.start_mark.line + 1} and {line + 1}"
                    where = lines if first.start_mark.line != line else "on this line"
                    return f"{name}:{line + 1}: '{plain(second.value, 60)}' appears twice ({where})"
    repeated_key = f"'{plain(key[1], 60)}'" if key else "a key"
    return f"{name}:{line + 1}: {repeated_key} appears twice"


def _excess(top: Any) -> tuple[int, str] | None:
    """Return the line (from 0) and the key of an entry that is too deep, or too large with all aliases resolved."""
    extents: dict[int, tuple[int, int]] = {}
    for key, value in top.value if isinstance(top.value, list) and top.id == "mapping" else [(top, top)]:
        if any(
            size > most for node in (key, value) for size, most in zip(_extent(node, extents), _MOST, strict=True)
        ):
            return key.start_mark.line, plain(key.value, 40) if key.id == "scalar" else "this"
    return None


def _extent(node: Any, memo: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the number of values in a YAML node with all aliases resolved, and the depth of their nesting."""
    if not isinstance(node.value, list):
        return 1, 1
    if id(node) not in memo:
        memo[id(node)] = _MOST[0] + 1, _MOST[1] + 1  # for a node that contains itself
        inner = itertools.chain(*node.value) if node.id == "mapping" else node.value
        extents = [_extent(item, memo) for item in inner]
        memo[id(node)] = 1 + sum(size for size, _ in extents), 1 + max((deep for _, deep in extents), default=0)
    return memo[id(node)]


def plain(text: object, width: int = 200) -> str:
    """Return a value from the file as one short line without control characters, for messages."""
    try:
        line = " ".join(str(text).split())
    except ValueError:  # an integer with more digits than Python prints
        return "a very long number"
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
    return line if len(line) <= width else f"{line[:width]}..."
