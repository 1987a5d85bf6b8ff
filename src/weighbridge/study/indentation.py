"""Finds the wrongly indented line of a study file, which YAML's parser does not name."""

_BLOCKS = ("<block mapping start>", "<block sequence start>")


def wrong_indentation(text: str, problem: str, line: int, column: int) -> str | None:
    """Return the mistake in the indentation of the line (from 0) that the parser rejects, or None."""
    lines = text.split("\n")
    content = lines[line] if line < len(lines) else ""
    indent = _indent(content)
    if content[indent:].startswith("\t"):
        return "wrong indentation: this line begins with a tab. Use spaces"
    misplaced = column == indent and problem.startswith("expected") and any(block in problem for block in _BLOCKS)
    # the line above already has a value, and this line appears to continue it
    continued = problem.startswith("mapping values are not allowed") and ":" not in content[:column]
    above = _indents_above(lines[:line])
    if not (misplaced or continued) or not above or indent in above:
        return None
    others = ", ".join(f"line {number} with {count}" for count, number in above.items())
    blanks = "1 space" if indent == 1 else f"{indent} spaces"
    return f"wrong indentation: this line begins with {blanks}, {others}. Indent it like its neighbours"


def _indents_above(lines: list[str]) -> dict[int, int]:
    """Return the indentations that can continue below these lines, innermost first, with their last lines."""
    open_indents: dict[int, int] = {}
    for number, line in reversed([*enumerate(lines, 1)]):
        indent = _indent(line)
        if line[indent : indent + 1] not in ("", "#", "\r") and indent < min(open_indents, default=indent + 1):
            open_indents[indent] = number
    return open_indents


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
