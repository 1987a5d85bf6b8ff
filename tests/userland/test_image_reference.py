"""The name by which a registry has the image of a userland."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge.userland.sources import image


@pytest.mark.parametrize(
    ("name", "digests", "expected"),
    [
        ("shop:1.4", ["r.example/shop@sha256:1", "shop@sha256:2"], "shop@sha256:2"),
        ("r.example:5000/shop:1.4", ["a@sha256:1", "r.example:5000/shop@sha256:2"], "r.example:5000/shop@sha256:2"),
        ("r.example:5000/shop", ["r.example:5000/shop@sha256:2", "x@sha256:1"], "r.example:5000/shop@sha256:2"),
        ("0123abcd", ["shop@sha256:2"], "shop@sha256:2"),
        ("shop:1.4", [], ""),
        ("shop:1.4", None, ""),
    ],
)
def test_it_is_a_digest_that_the_engine_knows(
    monkeypatch: pytest.MonkeyPatch, name: str, digests: list[str] | None, expected: str
):
    @contextmanager
    def named(_: str) -> Iterator[tuple[Any, Any]]:
        yield None, SimpleNamespace(attrs={"RepoDigests": digests})

    monkeypatch.setattr(image, "_image", named)
    assert image.PLUGIN.reference(image.ImageOptions(image=name)) == expected
