"""Single values of a study that the command line gives: ``--set hosts.a.node=worker-1``."""

from collections.abc import MutableMapping, Sequence
from typing import Any

from weighbridge.errors import StudyError
from weighbridge.model.spelling import nearest
from weighbridge.model.study import Study
from weighbridge.model.validation import is_hidden
from weighbridge.study.loader import check
from weighbridge.study.source import parse, plain, written

_NAMED = 2
"""Parts of a key that must exist in the study (``hosts.a``). Keys below them can be new."""


def with_settings(study: Study, settings: Sequence[str]) -> Study:
    """Return the study, and its text, with these values (``KEY.KEY=VALUE``, the value as YAML). Raises StudyError."""
    from ruamel.yaml import YAML

    if not settings:
        return study
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    data = yaml.load(study.text)
    for setting in settings:
        _set(data, setting)
    again = check(parse(written(data), f"{study.file.study} with --set"))
    return again.model_copy(update={"compose": study.compose})


def _set(data: Any, setting: str) -> None:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    key, equals, text = setting.partition("=")
    names = key.split(".")
    if not equals or not all(names):
        raise StudyError(f"--set {plain(setting, 100)}: write KEY=VALUE, such as hosts.a.node=worker-1")
    try:
        value = YAML(typ="rt").load(text)
    except YAMLError:
        end = "" if is_hidden(text, names) else f": {plain(text, 100)}"
        raise StudyError(f"--set {plain(key, 100)}: the value is not YAML{end}") from None
    place = data
    for depth, name in enumerate(names[:-1], 1):
        inner = place.get(name)
        if inner is None and depth > _NAMED:
            inner = place[name] = {}
        if not isinstance(inner, MutableMapping):
            above = f" in {'.'.join(names[: depth - 1])}" if depth > 1 else ""
            raise StudyError(f"--set {plain(key, 100)}: there is no '{plain(name, 60)}'{above}{nearest(name, place)}")
        place = inner
    if names[0] in ("study", "profiles"):
        raise StudyError(f"--set cannot change '{names[0]}'")
    if names[:-1] == ["repetitions"]:  # two names of one key, and a study has at most one of them
        place.pop({"rounds": "blocks", "blocks": "rounds"}.get(names[-1]), None)
    place[names[-1]] = value
