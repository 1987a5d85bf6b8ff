"""Recognises the bundled studies, which start nothing that Weighbridge does not know."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from weighbridge.model.stored_study import study_json
from weighbridge.model.study import Study
from weighbridge.runner.preflight import on_this_kernel
from weighbridge.study.profiles import load_each
from weighbridge.study.source import bundled, bundled_study


def is_bundled(study: Study) -> bool:
    """Return whether a bundled study has everything that a study has, except repetitions; its name proves nothing."""
    document = json.loads(study_json(study))
    return any(_contains(each, document) for each in _bundled(study.file.study))


def _bundled(name: str) -> Iterator[Mapping[str, Any]]:
    for _, study in load_each(bundled_study(name)) if name in bundled() else ():
        yield from (json.loads(study_json(each)) for each in (study, on_this_kernel(study)))


def _contains(bundled_document: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    files = [{**each["file"], "repetitions": None} for each in (bundled_document, document)]
    parts = (each in bundled_document[key] for key in ("arms", "cells") for each in document[key])
    return files[0] == files[1] and all(parts)
