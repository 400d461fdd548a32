"""Headings in the markup of wikis and AsciiDoc: `== Title ==`, `== Title`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from libs.documents.model import Block, BlockKind
from libs.documents.spans import strip_span

_HEADING = re.compile(
    r"^[ \t]{0,8}(?P<marks>=(?:[ ]?=){0,5})[ ]{0,8}(?P<title>[^\s=][^\n]{0,118}?)"
    r"[ ]{0,8}(?P<closing>(?:=[ ]?){0,6})[ ]{0,8}$",
    re.MULTILINE,
)
_INDENTATION = 8
_FEWEST = 2  # one line alone may be anything


def with_wiki_headings(text: str, blocks: Sequence[Block]) -> list[Block]:
    """Paragraphs are cut where such a line stands; nothing changes where there are not several.

    A level is as many marks as a line begins with; those at its end, if any, are as many. Tokenised
    texts have spaces between the marks.
    """
    found = {
        block.start: list(_matches(text, block))
        for block in blocks
        if block.kind is BlockKind.PARAGRAPH
    }
    if sum(map(len, found.values())) < _FEWEST:
        return list(blocks)
    return [piece for block in blocks for piece in _cut(text, block, found.get(block.start, []))]


def wiki_title(line: str) -> str | None:
    """What stands between the marks; None when the line is no such heading."""
    match = _HEADING.match(line)
    return match["title"] if match is not None and _is_heading(match) else None


def _matches(text: str, block: Block) -> Iterator["re.Match[str]"]:
    if "=" in text[block.start : block.end]:
        begin = block.start  # of the line: a block begins behind its indentation
        while begin > max(0, block.start - _INDENTATION) and text[begin - 1] in " \t":
            begin -= 1
        yield from filter(_is_heading, _HEADING.finditer(text, begin, block.end))


def _is_heading(match: "re.Match[str]") -> bool:
    marks, closing = match["marks"].count("="), match["closing"].count("=")
    return closing == marks or (closing == 0 and marks > 1)


def _cut(text: str, block: Block, headings: Sequence["re.Match[str]"]) -> Iterator[Block]:
    start = block.start
    for match in headings:
        yield from _paragraph(text, block, start, match.start())
        level = match["marks"].count("=")
        begin = match.start("marks")
        end = max(match.end("title"), match.end("closing"))
        end = begin + len(text[begin:end].rstrip())
        yield replace(block, kind=BlockKind.HEADING, start=begin, end=end, level=level)
        start = match.end()
    if headings:
        yield from _paragraph(text, block, start, block.end)
    else:
        yield block


def _paragraph(text: str, block: Block, start: int, end: int) -> Iterator[Block]:
    for begin, finish in strip_span(text, start, end):
        yield replace(block, start=begin, end=finish)
