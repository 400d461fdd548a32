"""Plain text: the text stays as it is, blocks are laid over it."""

import re
from collections.abc import Iterator

from libs.documents.headings import heading_rank, promote_headings
from libs.documents.model import Block, BlockKind
from libs.documents.normalise import normalise_text
from libs.documents.spans import strip_span
from libs.documents.wiki_headings import with_wiki_headings

_BLANK_LINES = re.compile(r"\n[ \t\u3000]*(?:\n[ \t\u3000]*)+")
_LINE = re.compile(r"[^\n]+")


def read_plain(source: str) -> tuple[str, list[Block]]:
    """The normalised text and its paragraphs and numbered headings.

    Paragraphs are what blank lines part; a numbered heading line stands alone.
    """
    text = normalise_text(source)
    paragraphs = [Block(BlockKind.PARAGRAPH, start, end) for start, end in _paragraphs(text)]
    marked = with_wiki_headings(text, paragraphs)
    return text, marked if marked != paragraphs else promote_headings(text, paragraphs)


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    position = 0
    for gap in _BLANK_LINES.finditer(text):
        yield from _cut_at_headings(text, position, gap.start())
        position = gap.end()
    yield from _cut_at_headings(text, position, len(text))


def _cut_at_headings(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Parts of a paragraph, each beginning with a heading line if it has one."""
    begin = start
    for line in _LINE.finditer(text, start, end):
        if line.start() > begin and heading_rank(line.group()) is not None:
            yield from strip_span(text, begin, line.start())
            begin = line.start()
    yield from strip_span(text, begin, end)
