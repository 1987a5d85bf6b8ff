"""A study file as text: read with care, parsed with the place of every key kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from weighbridge.errors import StudyError

LARGEST = 2**20
"""Bytes; a study file is a page or two, so anything larger is a mistake."""

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Source:
    """A parsed study file: its name for messages, its text, and its data with line numbers."""

    name: str
    text: str
    data: Any

    def where(self, place: Sequence[str | int]) -> str:
        """``file:line`` of the deepest part of ``place`` that is in the file."""
        node, line = self.data, 0
        for key in place:
            try:
                line = node.lc.data[key][0]
                node = node[key]
            except (AttributeError, KeyError, IndexError, TypeError):
                break
        return f"{self.name}:{line + 1}"


def bundled() -> dict[str, str]:
    """The bundled studies: name -> text."""
    folder = resources.files("weighbridge.study") / "bundled"
    files = (entry for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return {file.name.removesuffix(".yaml"): file.read_text() for file in sorted(files, key=lambda f: f.name)}


def read(study: str) -> Source:
    """The source of a bundled study by its name, or of a file by its path. StudyError says what is wrong."""
    path = Path(study)
    if not path.suffix and not path.exists():
        known = bundled()
        if study in known:
            return parse(known[study], f"{study} (bundled)")
        raise StudyError(
            f"there is neither a file nor a bundled study '{study}'{nearest(study, known)}; "
            f"bundled: {', '.join(known)}. Give a bundled name or the path of a YAML file"
        )
    return parse(_text(path), str(path))


def _text(path: Path) -> str:
    if path.is_dir():
        raise StudyError(f"{path} is a directory: give the path of a study file")
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise StudyError(f"{path} has {size / 2**20:.0f} MiB: a study file has at most {LARGEST // 2**20} MiB")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)  # a device or a pipe has no size
        if len(data) > LARGEST:
            raise StudyError(f"{path} does not end within {LARGEST // 2**20} MiB: it is no study file")
        text = data.decode()
    except FileNotFoundError:
        raise StudyError(f"there is no file {path}") from None
    except UnicodeDecodeError:
        raise StudyError(f"{path} is not text: a study file is YAML in UTF-8") from None
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror}") from None
    if "\0" in text:
        raise StudyError(f"{path} is not text: a study file is YAML in UTF-8")
    return text


def parse(text: str, name: str) -> Source:
    """Parse YAML 1.2; StudyError names file and line."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        data = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise StudyError(f"{name}:{line}: this is not YAML: {str(error.problem).splitlines()[0]}") from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise StudyError(f"{name}: this is not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(data, CommentedMap):
        raise StudyError(f"{name}: a study file is a list of 'key: value' lines; it starts with 'study: NAME'")
    return Source(name, text, data)


def nearest(word: object, known: Any) -> str:
    """``; did you mean 'X'?`` for the nearest right spelling, or nothing where none is near."""
    from difflib import get_close_matches

    by_lower = {str(name).lower(): str(name) for name in known}
    found = get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean '{by_lower[found[0]]}'?" if found else ""
