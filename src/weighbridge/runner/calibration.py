"""The last calibration of this machine, kept where later runs find it."""

import contextlib
import json
from pathlib import Path
from typing import Any

from weighbridge.userland.build import cache_folder


def _file() -> Path:
    return cache_folder() / "calibration.json"


def keep(found: dict[str, Any]) -> None:
    """Keep a calibration as this machine's last one."""
    _file().parent.mkdir(parents=True, exist_ok=True)
    _file().write_text(json.dumps(found, indent=1))


def facts() -> dict[str, str]:
    """The last calibration as facts of a run; empty where there is none or it cannot be read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(_file().read_text())
        total = len(found["readings"])
        told = {
            "calibrated": f"{found['made']}: {found['inside']} of {total} known costs were read inside their interval"
        }
        for what, spans in found["smallest_visible"].items():
            told[f"smallest visible cost, {what}"] = ", ".join(
                f"{cost:.2%} in {span}" for span, cost in spans.items()
            )
        return told
    return {}
