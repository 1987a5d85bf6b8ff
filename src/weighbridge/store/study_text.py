"""Reads the study of a run from before version 5 of the store, which only stored the YAML."""

from typing import Any

from pydantic import ValidationError

from weighbridge.model.stored_study import StoredFile


def file_of_text(text: str) -> StoredFile:
    """Return the readable parts of a study's text, unchecked and as written."""
    from ruamel.yaml import YAML

    try:
        document = YAML(typ="safe").load(text)
    except Exception:  # the parser itself fails on some texts: assertions, attributes, recursion
        document = None
    parts: dict[str, Any] = {}
    for key in StoredFile.model_fields:
        try:
            parts[key] = getattr(StoredFile.model_validate({key: document[key]}), key)
        except (ValidationError, KeyError, TypeError):
            continue
    return StoredFile(**parts)
