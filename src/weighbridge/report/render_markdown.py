"""Renders a document as Markdown, for an issue or the summary of a CI job."""

from collections.abc import Iterator, Sequence

from weighbridge.report.document import (
    Block,
    Chart,
    Command,
    Document,
    Fold,
    Heading,
    Listing,
    Rank,
    Sentence,
    Table,
    Tone,
)
from weighbridge.report.markdown import escaped

_MARKS: dict[str, str] = {Tone.STRONG: "**", Tone.DIM: "_"}


def markdown(document: Document, *, details: bool = False) -> str:
    """Return a document as Markdown; with `details` also its blocks of rank EXTRA."""
    ranks = {Rank.FIRST, Rank.REMARK, Rank.FULL, *([Rank.EXTRA] if details else [])}
    lines = [f"## {escaped(document.title)}", "", escaped(document.heading), ""]
    lines += _Markdown(document, ranks).lines(document.blocks)
    return "\n".join(lines)


class _Markdown:
    def __init__(self, document: Document, ranks: set[Rank]) -> None:
        self._document, self._ranks = document, ranks

    def lines(self, blocks: Sequence[Block]) -> Iterator[str]:
        for block in blocks:
            if block.rank in self._ranks:
                yield from self._block(block)

    def _block(self, block: Block) -> Iterator[str]:
        match block:
            case Heading():
                soft = f" ({escaped(block.soft)})" if block.soft else ""
                yield from (f"{'#' * (block.level + 1)} {escaped(block.text)}{soft}", "")
            case Sentence():
                mark = _MARKS.get(block.tone, "")
                yield from (f"{mark}{self._text(block)}{mark}", "")
            case Listing():
                yield from (*(f"- {self._text(each)}" for each in block.items), "")
            case Table():
                yield f"| {' | '.join(escaped(each.head) for each in block.columns)} |"
                yield f"|{''.join(' ---: |' if each.align == 'right' else ' --- |' for each in block.columns)}"
                yield from (f"| {' | '.join(map(self._text, row))} |" for row in block.rows)
                yield ""
            case Command():
                yield from (escaped(f"{block.label}{block.line}"), "")
            case Chart():
                yield from self.lines(block.fallback)
            case Fold():
                yield from (f"**{escaped(block.title)}**", "")
                yield from self.lines(block.blocks)

    def _text(self, sentence: Sentence) -> str:
        return "<br>".join(map(escaped, self._document.text(sentence.parts).split("\n")))
