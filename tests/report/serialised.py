"""A document as lines that a review can read: every block with its rank, and its values marked as values."""

from collections.abc import Iterator, Sequence

from weighbridge.report.document import (
    Block,
    Break,
    Chart,
    Code,
    Command,
    Document,
    Fold,
    Heading,
    Inline,
    Link,
    Listing,
    Rank,
    Sentence,
    Table,
    inline_text,
)
from weighbridge.report.text.environments import use_display_names

from .visible_text import titles


def serialised(document: Document) -> str:
    """Return the document; environments, amounts and costs are in braces, no-break spaces are spaces."""
    head = [f"{document.kind}: {document.title}", f"heading: {document.heading}"]
    with use_display_names(document.names):
        lines = [*head, *(f"{each.rank.value:8}{line}" for each in document.blocks for line in _block(each))]
    return "".join(f"{line.rstrip()}\n" for line in lines).replace("\u00a0", " ")


def _block(block: Block) -> Iterator[str]:
    match block:
        case Sentence():
            yield _sentence(block)
        case Heading():
            anchor = f" #{block.anchor}" if block.anchor else ""
            yield f"{'#' * block.level} {block.text}{f' ({block.soft})' if block.soft else ''}{anchor}"
        case Listing():
            yield f"list{f', on the screen after {block.label!r}' if block.label else ''}"
            yield from (f"  - {_sentence(each)}" for each in block.items)
        case Command():
            yield f"{block.label}$ {' '.join(block.arguments)}"
        case Table():
            anchor = f" #{block.anchor}" if block.anchor else ""
            yield f"table{anchor}: {' | '.join(each.head for each in block.columns)}"
            yield from (f"  {' | '.join(map(_sentence, row))}" for row in block.rows)
        case Chart():
            drawn = block.draw()
            yield f"chart: {block.title}; {', '.join(titles(drawn.definition)) if drawn else 'not drawn'}"
            yield from ([f"  legend: {', '.join(name for name, _ in block.legend)}"] if block.legend else [])
            yield from ([f"  caption: {block.caption}"] if block.caption else [])
            yield from _inside(block.fallback)
        case Fold():
            yield f"fold: {block.title}"
            yield from _inside(block.blocks)


def _inside(blocks: Sequence[Block]) -> Iterator[str]:
    for each in blocks:
        rank = "" if each.rank is Rank.FULL else f"({each.rank.value}) "
        yield from (f"  {rank}{line}" for line in _block(each))


def _sentence(sentence: Sentence) -> str:
    return f"{''.join(map(_inline, sentence.parts))}{f'  <{sentence.tone}>' if sentence.tone else ''}"


def _inline(part: Inline) -> str:
    match part:
        case str():
            return part
        case Break():
            return " / "
        case Code():
            return f"`{part.text}`"
        case Link():
            return f"[{part.text}]({part.to})"
    return f"{{{inline_text(part, {})}}}"
