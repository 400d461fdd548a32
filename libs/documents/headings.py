"""Headings that only their numbering gives away, in Chinese and English."""

import re
from collections.abc import Sequence
from dataclasses import replace

from libs.documents.model import Block, BlockKind

MAX_HEADING_CHARS = 60

_CN = "〇零一二三四五六七八九十百千两0-9０-９"
# Outer to inner. A document's levels are the ranks it uses, counted from 1.
_STYLES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"第[{_CN}]+[编部篇](?=[\s:：、]|$)|PART\s+[IVXLC\d]+\b",
        rf"第[{_CN}]+章|CHAPTER\s+[IVXLC\d]+\b|Chapter\s+[IVXLC\d]+\b",
        rf"第[{_CN}]+节|(?:SECTION|Section)\s+[IVXLC\d]+\b",
        rf"[{_CN[:14]}]+、",
        rf"[（(][{_CN[:14]}]+[）)]",
        r"\d{1,2}[.．、]\s*(?=[^\W\d_])",
        r"\d{1,2}\.\d{1,2}\.?\s+(?=[^\W\d_])",
        r"\d{1,2}(?:\.\d{1,2}){2}\.?\s+(?=[^\W\d_])",
        r"\d{1,2}(?:\.\d{1,2}){3,5}\.?\s+(?=[^\W\d_])",
    )
)
_SINGLE_NUMBER = 5  # `1. text` is as often a list item as a heading
_SENTENCE_END = re.compile(r"[。！？；，,;!?]\s*$|[^.]\.\s*$|\.{4,}|…{2,}")


def heading_rank(line: str) -> int | None:
    """The rank of a line's numbering (0 is the outermost), None when it is not a heading."""
    line = line.strip()
    if not line or len(line) > MAX_HEADING_CHARS or _SENTENCE_END.search(line):
        return None
    for rank, style in enumerate(_STYLES):
        if style.match(line):
            return rank
    return None


def promote_headings(text: str, blocks: Sequence[Block]) -> list[Block]:
    """Turn numbered first lines of paragraphs into headings, for sources that mark none.

    A paragraph whose first line is a heading is cut in two. Numbered single lines that follow
    each other directly are a list, not headings. Offsets still rebuild the text.
    """
    ranks = [_rank_of_block(text, block) for block in blocks]
    _drop_lists(ranks)
    used = sorted({rank for rank in ranks if rank is not None})
    promoted: list[Block] = []
    for block, rank in zip(blocks, ranks, strict=True):
        if rank is None:
            promoted.append(block)
        else:
            promoted.extend(_split_heading(text, block, used.index(rank) + 1))
    return promoted


def with_numbered_headings(text: str, blocks: Sequence[Block]) -> list[Block]:
    """The blocks with numbered headings, where the source marks none or hardly any.

    A source that marks fewer headings than are numbered marked its title only: the numbered ones
    come below it.
    """
    marked = [block for block in blocks if block.kind is BlockKind.HEADING]
    promoted = promote_headings(text, blocks)
    if not marked:
        return promoted
    starts = {block.start for block in marked}
    added = {
        block.start
        for block in promoted
        if block.kind is BlockKind.HEADING and block.start not in starts
    }
    if len(added) <= len(marked):
        return list(blocks)
    deepest = max(block.level or 1 for block in marked)
    return [
        replace(block, level=(block.level or 1) + deepest) if block.start in added else block
        for block in promoted
    ]


def _rank_of_block(text: str, block: Block) -> int | None:
    if block.kind not in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM}:
        return None
    line_end = text.find("\n", block.start, block.end)
    return heading_rank(text[block.start : block.end if line_end < 0 else line_end])


def _drop_lists(ranks: list[int | None]) -> None:
    for style in (_SINGLE_NUMBER, _SINGLE_NUMBER - 1, _SINGLE_NUMBER - 2):
        same = [rank == style for rank in ranks]
        for at, rank in enumerate(ranks):
            if rank == style and (same[at - 1 : at] == [True] or same[at + 1 : at + 2] == [True]):
                ranks[at] = None


def _split_heading(text: str, block: Block, level: int) -> list[Block]:
    line_end = text.find("\n", block.start, block.end)
    if line_end < 0:
        return [replace(block, kind=BlockKind.HEADING, level=level)]
    rest = line_end + 1
    while rest < block.end and text[rest].isspace():
        rest += 1
    heading = replace(block, kind=BlockKind.HEADING, end=line_end, level=level)
    return [heading, replace(block, start=rest)] if rest < block.end else [heading]
