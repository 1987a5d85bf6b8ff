"""Makes text from programs, servers and files safe to show."""

from unicodedata import category


def one_line(text: object, most: int | None = None) -> str:
    """Return the text in one line, without control characters, and with at most ``most`` characters."""
    return " ".join(printable(str(text)).split())[:most]


def printable(text: str) -> str:
    """Return the text without control characters and surrogates, which could affect a terminal; lines are kept."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # nearly all
        return text
    hidden = {
        ord(c): "\N{REPLACEMENT CHARACTER}" for c in set(text) if c not in "\n\t" and category(c).startswith("C")
    }
    return text.translate(hidden) if hidden else text
