"""Slides in the order they are shown, each a page. Tika takes them by their relationship's id."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

from lxml import etree

from libs.documents.builder import BlockBuilder
from libs.documents.model import Block, BlockKind

_MAX_PART_BYTES = 20_000_000
_RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def slide_order(path: Path) -> list[int] | None:
    """For each slide as shown, its place in Tika's output; None for other or damaged files.

    Tika sorts the ids as text: rId10 comes before rId7.
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open("ppt/presentation.xml") as file:
            root = etree.fromstring(
                file.read(_MAX_PART_BYTES), etree.XMLParser(resolve_entities=False)
            )
    except (KeyError, zipfile.BadZipFile, OSError, ValueError, etree.XMLSyntaxError):
        return None
    shown = [str(slide.get(_RELATION_ID)) for slide in root.iter("{*}sldId")]
    given = sorted(shown)
    return [given.index(relation) for relation in shown]


def slides_as_pages(
    text: str,
    blocks: Sequence[Block],
    starts: Sequence[int],
    end: int,
    order: Sequence[int],
    max_chars: int,
) -> BlockBuilder:
    """The blocks of each slide as a page, in `order`; what belongs to no slide stays outside.

    Args:
        starts: Index of the first block of each slide as Tika gave them.
        end: Index of the first block after the slides.
    """
    builder = BlockBuilder(max_chars)
    bounds = [*starts, end]
    copy_blocks(text, blocks[: bounds[0]], builder)
    for slide in order:
        builder.page_break()
        copy_blocks(text, blocks[bounds[slide] : bounds[slide + 1]], builder)
    builder.page_ends()
    copy_blocks(text, blocks[end:], builder)
    return builder


def copy_blocks(text: str, blocks: Sequence[Block], builder: BlockBuilder) -> None:
    """Add blocks of a text to a builder, on its current page."""
    for block in blocks:
        if block.kind is not BlockKind.PAGE_BREAK:
            verbatim = block.kind is BlockKind.CODE
            part = text[block.start : block.end]
            builder.add(block.kind, part, level=block.level, verbatim=verbatim)
