"""pyproject.toml names the Pythons that are tried."""

import tomllib

from .interpreters import SOURCE, VERSIONS


def test_the_pythons_that_are_named_are_tried():
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    named = [text.rpartition(" ")[2] for text in project["classifiers"] if ":: Python ::" in text]
    assert (*named,) == VERSIONS
    assert project["requires-python"] == f">={VERSIONS[0]}"
