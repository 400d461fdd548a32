"""Puts the lines of a PDF page together again: paragraphs that its layout cut into lines."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from libs.documents.builder import BlockBuilder
from libs.documents.headings import heading_rank
from libs.documents.model import Block, BlockKind

_BULLET = re.compile("^[\ufffd\u2022\u25cf\u25aa\u25a0\u25e6\u00b7\uf000-\uf0ff][ \t]")
_LEADERS = re.compile(r"(?:[ \u3000]?[.·．…]){6,}")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_ENDS = re.compile(r"[。！？：；.!?:;][”’」』）)\"']*$")
_STARTS_ITEM = re.compile(
    r"(?:[•–—*-]|\(?\d{1,3}[.)、]|[a-zA-Z][.)]|[（(][一二三四五六七八九十\d]+[）)]) ?\D"
)
_HYPHEN = re.compile(r"[a-z]-$")  # stays: it may be the word's own
_FULL_SHARE = 0.8  # of the page's usual line length: longer lines were cut by the margin
_FULL_SHARE_ACROSS = 0.85
_MIN_USUAL_WIDTH = 30  # on title pages and in lists of names nothing is cut by the margin
_USUAL_RANK = 0.9


def reflow(text: str, blocks: Sequence[Block], max_chars: int) -> BlockBuilder:
    """The same document with its paragraphs' lines joined, page by page.

    A line joins the next one when it reaches the margin, does not end a sentence and the next
    does not begin an item or a heading. Symbol-font bullets become `•`, dot leaders `……`.
    """
    builder = BlockBuilder(max_chars)
    page: list[Block] = []
    for block in blocks:
        if block.kind is BlockKind.PAGE_BREAK:
            _add_page(text, page, builder)
            page = []
            builder.page_break()
        else:
            if builder.page is None and block.page is not None:
                builder.page_break()
            page.append(block)
    _add_page(text, page, builder)
    return builder


def _add_page(text: str, blocks: Sequence[Block], builder: BlockBuilder) -> None:
    usual = _usual_width(text, blocks)
    lines: list[str] = []
    for block in blocks:
        if block.kind is not BlockKind.PARAGRAPH:
            _add_paragraph(lines, usual, builder)
            verbatim = block.kind is BlockKind.CODE
            slice_ = text[block.start : block.end]
            builder.add(block.kind, slice_, level=block.level, verbatim=verbatim)
            continue
        own = [_clean(line) for line in text[block.start : block.end].split("\n")]
        if lines and not (own and _continues(lines[-1], own[0], usual)):
            _add_paragraph(lines, usual, builder)
        lines += own
    _add_paragraph(lines, usual, builder)


def _add_paragraph(lines: list[str], usual: int, builder: BlockBuilder) -> None:
    """Emit and empty `lines`: items apart, wrapped lines joined, short lines kept as lines."""
    item: list[str] = []
    for line in lines:
        if line.startswith("• ") and item:
            _add_lines(item, usual, builder)
            item = []
        item.append(line)
    _add_lines(item, usual, builder)
    lines.clear()


def _add_lines(lines: Sequence[str], usual: int, builder: BlockBuilder) -> None:
    if lines:
        kind = BlockKind.LIST_ITEM if lines[0].startswith("• ") else BlockKind.PARAGRAPH
        builder.add(kind, "".join(_joined(lines, usual)))


def _joined(lines: Sequence[str], usual: int) -> Iterator[str]:
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else None
        if following is None:
            yield line
        elif not _wraps(line, following, usual):
            yield line + "\n"
        elif _joins_without_space(line, following):
            yield line
        else:
            yield line + " "


def _joins_without_space(line: str, following: str) -> bool:
    if _WIDE.match(line[-1:]) or _WIDE.match(following[:1]):
        return True
    return bool(_HYPHEN.search(line)) and following[:1].islower()


def _continues(line: str, following: str, usual: int) -> bool:
    """Whether a paragraph that the layout parted goes on: stricter than inside a paragraph."""
    if usual < _MIN_USUAL_WIDTH or _width(line) < _FULL_SHARE_ACROSS * usual:
        return False
    return _wraps(line, following, usual) and not _ENDS.search(line)


def _wraps(line: str, following: str, usual: int) -> bool:
    return bool(
        line
        and following
        and _width(line) >= _FULL_SHARE * usual
        and not _STARTS_ITEM.match(following)
        and heading_rank(line) is None
        and heading_rank(following) is None
    )


def _usual_width(text: str, blocks: Sequence[Block]) -> int:
    widths = sorted(
        _width(line)
        for block in blocks
        if block.kind is BlockKind.PARAGRAPH
        for line in text[block.start : block.end].split("\n")
    )
    return widths[int(len(widths) * _USUAL_RANK)] if widths else 0


def _width(line: str) -> int:
    """Columns: wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)


def _clean(line: str) -> str:
    return _LEADERS.sub(" …… ", _BULLET.sub("• ", line)).strip()
