"""Vega, Vega-Lite and Vega-Embed as one script, from the copy inside vl-convert.

vl-convert takes a second to bundle them, so the script is kept in the user's cache, by the versions that it is of.
"""

import contextlib
import os
import secrets
import stat
from functools import cache
from importlib import metadata
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.user_cache import user_cache_folder


@cache
def chart_library() -> str:
    """Return the script; it holds nothing that would end a script element."""
    version = vega_lite_version()
    kept = _folder()
    file = kept / f"vega-{metadata.version('vl-convert-python')}-{version}.js" if kept else None
    script = _read(file) if file else ""
    if script:
        return script
    import vl_convert

    script = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version))
    if "</script" in script.lower() or "<!--" in script:
        raise AssertionError("the chart library holds text that would end its script element")
    if file:
        _keep(file, script)
    return script


@cache
def vega_lite_version() -> str:
    """Return the newest version of Vega-Lite that vl-convert ships."""
    import vl_convert

    return str(vl_convert.get_vegalite_versions()[-1])


def _folder() -> Path | None:
    if given := os.environ.get("WEIGHBRIDGE_CACHE"):
        return Path(given).absolute() / "charts"
    with contextlib.suppress(Unavailable):
        return user_cache_folder() / "charts"
    return None


def _read(file: Path) -> str:
    """What is kept; empty where there is nothing, or another user could have written it."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as opened:
        about = os.fstat(opened.fileno())
        mine = about.st_uid == os.geteuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        return opened.read() if mine and stat.S_ISREG(about.st_mode) else ""


def _keep(file: Path, script: str) -> None:
    """Keep it whole or not at all; a cache that cannot be written is no failure."""
    anew = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            anew.write_text(script, encoding="utf-8")
            anew.chmod(0o600)
            anew.replace(file)
        finally:
            anew.unlink(missing_ok=True)
