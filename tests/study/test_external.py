"""Whether everything that a study names of the user's is marked, so that it is shown before the user agrees."""

import typing
from collections.abc import Iterator
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.model.options import External, Options
from weighbridge.model.study import StudyFile
from weighbridge.model.supporting_service import SupportingService
from weighbridge.study.validated import option_models

WORDS = ("path", "file", "folder", "dir", "config", "command", "program", "run", "script", "env", "address", "socket")
"""Parts of the names of options that can name a file, a program or a machine."""
HARMLESS = {
    "CommandOptions.metrics": "how figures are read from the output",
    "SupportingService.volumes": "names of the run's own volumes",
    "SupportingService.working_dir": "a folder inside of the container",
    "ComposeOptions.file": "shown as the Compose file of the study",
    "ComposeOptions.load": "shown at the workload that it becomes",
    "ComposeOptions.saved": "shown at the companions that the Compose file becomes",
    "DockerOptions.addresses": "addresses in the subnet that is shown",
    "MetricOptions.path": "a place in a JSON document that the program prints",
    "Prometheus.queries": "sent to the server that is shown",
    "Resources.pin": "numbers of CPUs",
    "StudyFile.companions": "each companion is walked",
    "StudyFile.environments": "each kind is walked",
    "StudyFile.explain": "names of environments",
    "StudyFile.hosts": "each kind is walked",
    "StudyFile.profiles": "a study is loaded with one of them, and the result is shown",
    "StudyFile.workloads": "each kind is walked",
}
"""Options that look external, each with the reason why they do not."""


def _inner(annotation: Any) -> Iterator[Any]:
    yield annotation
    for each in typing.get_args(annotation):
        yield from _inner(each)


def _models(model: type[Options], seen: set[type[Options]]) -> Iterator[type[Options]]:
    if model in seen:
        return
    seen.add(model)
    yield model
    for field in model.model_fields.values():
        for each in _inner(field.annotation):
            if isinstance(each, type) and issubclass(each, Options):
                yield from _models(each, seen)


def _all_models() -> list[type[Options]]:
    roots: list[type[Options]] = [StudyFile, SupportingService]
    roots += [model for by_kind in option_models().values() for model in by_kind.values()]
    plugins = (registry.environments(), registry.workloads(), registry.hosts(), registry.userlands())
    roots += [plugin.options for by_kind in plugins for plugin in by_kind.values()]
    seen: set[type[Options]] = set()
    return [each for root in roots for each in _models(root, seen)]


def _looks_like_bringing(key: str, annotation: Any) -> bool:
    inner = [*_inner(annotation)]
    has_text = any(each is str for each in inner)
    is_mapping = any(typing.get_origin(each) is dict for each in inner)
    return has_text and (is_mapping or any(word in WORDS for word in key.split("_")))


def _unmarked() -> set[str]:
    return {
        f"{model.__name__}.{key}"
        for model in _all_models()
        for key, field in model.model_fields.items()
        if _looks_like_bringing(key, field.annotation)
        and not any(isinstance(each, External) for each in field.metadata)
    }


def test_every_option_that_names_something_of_the_user_is_marked():
    assert _unmarked() - HARMLESS.keys() == set(), "add one of External, or say in HARMLESS why it is not external"


def test_no_option_is_called_harmless_that_is_not_there():
    assert HARMLESS.keys() - _unmarked() == set()


@pytest.mark.parametrize(
    "name", ["HostRootOptions", "SupportingService", "HostPathOptions", "SshOptions", "DockerOptions"]
)
def test_the_models_are_walked(name: str):
    assert name in {each.__name__ for each in _all_models()}
