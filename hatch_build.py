"""Puts the static launcher into wheels: compiled here, for this machine's processor or the one asked for."""

import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ASKED = "WEIGHBRIDGE_WHEEL"
"""The variable that names a processor (``aarch64``): the wheel is for it, or is not built."""
_PLATFORMS = ("manylinux2014_{0}", "manylinux_2_17_{0}", "musllinux_1_1_{0}")
"""What a static program runs on: Linux with either libc, from the oldest tags that both processors have."""


class CustomBuildHook(BuildHookInterface):
    """Compiles the launcher into a wheel. Without a compiler the wheel has none, and is for every processor."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the launcher and the platforms that it runs on."""
        asked = os.environ.get(ASKED)
        if version == "editable" or not (asked or sys.platform == "linux"):
            return
        machine = asked or platform.machine()
        sys.path.insert(0, str(Path(self.root, "src")))  # the modules used here need no other package
        from weighbridge.errors import WeighbridgeError
        from weighbridge.launcher import build

        self._folder = tempfile.TemporaryDirectory(prefix="weighbridge-wheel-")  # until the wheel is written
        program = Path(self._folder.name, build.NAME)
        try:
            build.compile_for(machine, program)
        except WeighbridgeError as error:
            if asked:
                raise
            self.app.display_warning(f"no launcher is in this wheel: {error}")
            return
        build_data["force_include"][str(program)] = str(
            Path("weighbridge", build.PREBUILT.relative_to(Path(build.__file__).parents[1]))
            / build.source_key(machine)
            / build.NAME
        )
        platforms = _PLATFORMS if machine in ("x86_64", "aarch64") else ("linux_{0}",)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{'.'.join(platforms).format(machine)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the compiled program."""
        if folder := getattr(self, "_folder", None):
            folder.cleanup()
