"""Files as `docker save` writes them, of an image without layers."""

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def save_without_layers(path: Path, config: Mapping[str, Any]) -> None:
    """Write one with this configuration: ``Entrypoint``, ``Cmd``."""
    members = {"config.json": {"config": config}, "manifest.json": [{"Config": "config.json", "Layers": []}]}
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            about, data = tarfile.TarInfo(name), json.dumps(content).encode()
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
