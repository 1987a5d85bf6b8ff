"""Text that others wrote - programs, servers, files - made fit to be shown."""

from unicodedata import category


def one_line(text: object, most: int | None = None) -> str:
    """Return the text in one line, without characters that steer; of so many characters at most, if it is said."""
    return " ".join(printable(str(text)).split())[:most]


def printable(text: str) -> str:
    """The text without control characters, which could steer a terminal, nor parts of characters; lines are kept."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # nearly all
        return text
    hidden = {
        ord(c): "\N{REPLACEMENT CHARACTER}" for c in set(text) if c not in "\n\t" and category(c).startswith("C")
    }
    return text.translate(hidden) if hidden else text
