"""Remarks for machines: code, figures and names, and the sentence that people read."""

import math
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from weighbridge.analysis.remarks import Remark
from weighbridge.report.text.remarks import remark_text


def remark_json(remark: Remark) -> dict[str, Any]:
    """Return ``code``, the fields of the remark's class under their names, and ``text``."""
    return {"code": str(remark.code), **_plain(remark), "text": remark_text(remark)}


def _plain(value: object) -> Any:
    """A value as JSON has it: data as objects by the names of its fields, numbers that are not finite as null."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        named = getattr(value, "_asdict", None)
        return named() if named else [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
