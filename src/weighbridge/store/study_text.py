"""What the study of a run from before version 5 of the store says, which kept its YAML alone."""

from typing import Any

from pydantic import ValidationError

from weighbridge.model.stored_study import StoredFile


def file_of_text(text: str) -> StoredFile:
    """Return what a study's text says as far as it can be read, unchecked and as it was written."""
    from ruamel.yaml import YAML

    try:
        document = YAML(typ="safe").load(text)
    except Exception:  # the parser itself stumbles over some texts: assertions, attributes, recursion
        document = None
    parts: dict[str, Any] = {}
    for key in StoredFile.model_fields:
        try:
            parts[key] = getattr(StoredFile.model_validate({key: document[key]}), key)
        except (ValidationError, KeyError, TypeError):
            continue
    return StoredFile(**parts)
