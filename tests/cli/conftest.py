"""Pages without the charts that are drawn for readers without a script: tests/report looks at these."""

import pytest


@pytest.fixture(autouse=True)
def _quick_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weighbridge.report.page.static_svg", lambda *_: "")
