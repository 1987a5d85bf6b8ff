"""The Dockerfile of a study's programs, with the sources of those that it builds."""

import json
import re

from weighbridge.errors import StudyError
from weighbridge.features.kit.rendering import render
from weighbridge.model.by_hand import Recipe

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9+_.:/@-]*")


def image_files(recipe: Recipe) -> dict[str, bytes]:
    """Return the Dockerfile and the files that it copies, by path. Raises StudyError for invalid names."""
    of_builds = (name for each in recipe.builds for name in each.packages)
    words = (recipe.base, *recipe.components, *recipe.packages, *of_builds)
    for word in words:
        if not _WORD.fullmatch(word):
            raise StudyError(f"'{word:.60}' is not a valid image or package name")
    stages = [
        {
            "name": each.name, "packages": each.packages, "product": each.product, "place": each.place,
            "commands": [json.dumps(command) for command in each.commands],
        }
        for each in recipe.builds
    ]  # fmt: skip
    sources = {f"build/{each.name}/{path}": data for each in recipe.builds for path, data in each.files.items()}
    return {
        "Dockerfile": render("Dockerfile.j2", recipe=recipe, stages=stages),
        ".dockerignore": b"*\n!build\n",
        **sources,
    }
