"""What the parser read, as a response."""

from dataclasses import asdict

from pydantic import BaseModel

from libs.documents.model import BlockKind
from libs.documents.serialise import Outline


class BlockView(BaseModel):
    """A run of the text as the parser read it."""

    ordinal: int
    kind: BlockKind
    start: int  # code points into the text
    end: int
    page: int | None  # counted from 1
    level: int | None  # of headings: 1 is the outermost


class BlockPage(BaseModel):
    """`total`, `chars` and what follows are of the whole document."""

    generation: int
    items: list[BlockView]
    next: int | None  # the `after` of the next page
    total: int
    chars: int
    title: str | None
    language: str | None
    pages: int | None
    tables: int
    warnings: list[str]


def block_page(outline: Outline, generation: int, *, after: int) -> BlockPage:
    """Args: after: The number of the block before the outline's first one."""
    first = after + 1
    items = [
        BlockView(ordinal=ordinal, **asdict(block))
        for ordinal, block in enumerate(outline.blocks, start=first)
    ]
    seen = first + len(items)
    return BlockPage(
        generation=generation,
        items=items,
        next=seen - 1 if items and seen < outline.block_count else None,
        total=outline.block_count,
        chars=outline.char_count,
        title=outline.title,
        language=outline.language,
        pages=outline.page_count,
        tables=outline.table_count,
        warnings=outline.warnings,
    )
