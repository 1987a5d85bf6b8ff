"""Elements of SVG as text, escaped."""

from typing import Any

from markupsafe import escape

from weighbridge.model.text import printable

INK, LINE = "currentColor", "#88888859"
"""Colours of words and lines that can be read on a light page and on a dark one."""


def tag(name: str, text: str = "", /, **attributes: Any) -> str:
    """Return an element, escaped; attributes of None are left out."""
    given = "".join(
        f' {key.replace("_", "-")}="{escape(short(value))}"' for key, value in attributes.items() if value is not None
    )
    return f"<{name}{given}>{escape(text)}</{name}>" if text else f"<{name}{given}/>"


def short(value: Any) -> Any:
    """Return a number with at most two decimals; anything else as it is."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def text(words: str, x: float, y: float, anchor: str, **more: Any) -> str:
    """Return words at a place, escaped and without what XML cannot hold."""
    shown = printable(words).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
    return tag("text", shown, x=x, y=y, text_anchor=anchor, fill=INK, **more)
