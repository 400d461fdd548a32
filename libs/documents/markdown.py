"""Markdown: the source stays the text, the blocks of the syntax are laid over it."""

import re
from collections.abc import Iterator
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.token import Token

from libs.documents.model import Block, BlockKind
from libs.documents.normalise import normalise_text
from libs.documents.spans import strip_span
from libs.documents.wiki_headings import wiki_title, with_wiki_headings

_CLOSING_MARKS = re.compile(r"\s+#+\s*$")

_KINDS = {
    "paragraph_open": BlockKind.PARAGRAPH,
    "html_block": BlockKind.PARAGRAPH,
    "heading_open": BlockKind.HEADING,
    "fence": BlockKind.CODE,
    "code_block": BlockKind.CODE,
    "table_open": BlockKind.TABLE,
}


def read_markdown(source: str) -> tuple[str, list[Block]]:
    """The normalised source and its headings, paragraphs, list items, tables and code.

    A block's text holds its markup (`## Title`, `| a | b |`).
    """
    text = normalise_text(source)
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    starts = [min(start, len(text)) for start in starts]
    blocks: list[Block] = []
    position = 0
    for kind, first, last, level in _leaves(text):
        start, end = starts[first], starts[min(last, len(starts) - 1)]
        if start < position:  # lines of a leaf inside another one
            continue
        blocks += _block(BlockKind.PARAGRAPH, text, position, start)
        blocks += _block(kind, text, start, end, level)
        position = end
    blocks += _block(BlockKind.PARAGRAPH, text, position, len(text))
    return text, with_wiki_headings(text, blocks)


def heading_title(line: str) -> str:
    """A heading block's text without the marks of Markdown or a wiki."""
    line = line.strip().partition("\n")[0]
    if (title := wiki_title(line)) is not None:
        return title
    return _CLOSING_MARKS.sub("", line.lstrip("#")).strip() if line.startswith("#") else line


def _block(
    kind: BlockKind, text: str, start: int, end: int, level: int | None = None
) -> Iterator[Block]:
    for begin, finish in strip_span(text, start, end):
        yield Block(kind, begin, finish, None, level)


def _leaves(text: str) -> Iterator[tuple[BlockKind, int, int, int | None]]:
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    list_depth = 0
    for token in parser.parse(text):
        list_depth += token.type == "list_item_open"
        list_depth -= token.type == "list_item_close"
        kind = _KINDS.get(token.type)
        if kind is None or token.map is None:
            continue
        if kind is BlockKind.PARAGRAPH and list_depth:
            kind = BlockKind.LIST_ITEM
        yield kind, token.map[0], token.map[1], _level(token)


def _level(token: Token) -> int | None:
    return int(token.tag[1]) if token.type == "heading_open" else None
