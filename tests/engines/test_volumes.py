"""A volume of a name that somebody else's has is neither used nor removed."""

from types import SimpleNamespace
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.engines.docker import Engine
from weighbridge.engines.labelled import LABEL
from weighbridge.engines.settings import USUAL
from weighbridge.errors import Unavailable
from weighbridge.model.host import Capabilities


class Volumes:
    """Those of an engine: what is created twice is given back as it is."""

    def __init__(self) -> None:
        self.there: dict[str, Any] = {}

    def create(self, name: str, *, labels: dict[str, str], **_: Any) -> Any:
        def remove(**_: Any) -> None:
            del self.there[name]

        return self.there.setdefault(
            name, SimpleNamespace(name=name, attrs={"Labels": labels or None}, remove=remove)
        )


def engine() -> Engine:
    client = SimpleNamespace(volumes=Volumes(), version=dict)
    run, host = SimpleNamespace(id="0123456789ab"), SimpleNamespace(capabilities=Capabilities())
    return Engine(client, run, host, USUAL, private=False)  # type: ignore[arg-type]


def test_one_of_ours_is_there_and_gone():
    made = engine()
    with made.volume("one") as name:
        assert made.client.volumes.there[name].attrs["Labels"] == {LABEL: "0123456789ab"}
    assert not made.client.volumes.there


@pytest.mark.parametrize("labels", [{}, {LABEL: "another"}])
def test_one_that_was_there_stays(labels: dict[str, str]):
    made = engine()
    made.client.volumes.create("weighbridge-0123456789ab-one", labels=labels)
    with raises_sentence(Unavailable), made.volume("one"):
        pass
    assert list(made.client.volumes.there) == ["weighbridge-0123456789ab-one"]
