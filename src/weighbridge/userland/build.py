"""Builds and caches root filesystems: each is built once, whatever its source, and never changed afterwards."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from weighbridge import build_once, registry
from weighbridge.errors import Unavailable, UserlandError
from weighbridge.model.command import ProcessDefaults
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.model.userland_source import SourceOptions, UserlandSource
from weighbridge.user_cache import cache_folder
from weighbridge.userland.products import archive, root

__all__ = ["cache_folder", "cached", "cannot_build", "ensure", "key_of"]

_ABOUT = "about.json"


def key_of(spec: UserlandSpec, source: SourceOptions | None = None) -> str:
    """Return the name under which a root filesystem is cached."""
    return _plugin(source).key(source, spec)


def cached(spec: UserlandSpec, cache: Path, source: SourceOptions | None = None) -> Userland | None:
    """Return a root filesystem that needs no build, or None. ``source`` None means Debian packages."""
    plugin = _plugin(source)
    if (existing := plugin.existing(source)) is not None:
        return existing
    folder = cache / "userlands" / plugin.key(source, spec)
    try:
        record = json.loads((folder / _ABOUT).read_text())
        process = record.get("process", {})  # older records have none
        process = ProcessDefaults(**{**process, "groups": tuple(process.get("groups", ()))})
        return Userland(record["digest"], folder / root.NAME, folder / archive.NAME, record["versions"], process)
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise Unavailable(
            f"the cached root filesystem {folder} can only be read by the user who built it: set WEIGHBRIDGE_CACHE "
            "to your own folder"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserlandError(
            f"the cached root filesystem {folder} is damaged ({error}): delete it and run again"
        ) from error


def cannot_build(spec: UserlandSpec, source: SourceOptions | None = None) -> tuple[str, str] | None:
    """Return why this user cannot build a root filesystem, and a remedy; None if the user can."""
    return _plugin(source).cannot_build(source, spec, cache_folder())


def ensure(
    spec: UserlandSpec, cache: Path, say: Callable[[str], None], source: SourceOptions | None = None
) -> Userland:
    """Return the root filesystem, built if needed.

    Several runs can call this at the same time. Raises Unavailable if this user cannot build one, UserlandError if
    the build fails, DiskFull.
    """
    plugin = _plugin(source)

    def build(work: Path) -> None:
        if not plugin.shared:
            work.chmod(0o700)
        versions = plugin.build(source, spec, work, cache, say)
        tar, folder = work / archive.NAME, work / root.NAME
        root.unpack(tar, folder)
        record = {
            "digest": archive.digest_of(tar),
            "versions": {**root.packages_in(folder), **versions},
            "asked": spec.packages,
            "source": plugin.kind,
            "process": asdict(plugin.process(source, folder)),
        }
        (work / _ABOUT).write_text(json.dumps(record, indent=1, sort_keys=True))

    built = build_once.ensure(
        cache / "userlands",
        plugin.key(source, spec),
        "the userland",
        lambda: cached(spec, cache, source),
        # missing parts of Maven, Go and C are reported by their own builds
        lambda: plugin.cannot_build(source, UserlandSpec(), cache),
        say,
        build,
    )
    return replace(built, reference=plugin.reference(source)) if plugin.from_registry else built


def _plugin(source: SourceOptions | None) -> UserlandSource:
    return registry.userlands()["packages" if source is None else source.kind]
