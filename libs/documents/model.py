"""The document model: what a parser hands to the chunker, independent of the file format."""

from dataclasses import dataclass, field
from enum import StrEnum


class BlockKind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    CODE = "code"
    PAGE_BREAK = "page_break"


@dataclass(frozen=True, slots=True)
class Block:
    """A run of the document's text.

    `text.txt` of the document, sliced `[start:end]`, is exactly this block's text; offsets are
    code points. Tables are one block, a row a line, cells joined by ` | `, the header row first.
    """

    kind: BlockKind
    start: int
    end: int
    page: int | None = None  # 1-based; None where the format has no pages
    level: int | None = None  # headings: 1 is the outermost


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """Blocks in reading order over one text; blocks never overlap, gaps hold only white space."""

    text: str
    blocks: list[Block]
    media_type: str
    title: str | None = None
    language: str | None = None
    page_count: int | None = None
    table_count: int = 0
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of `text.txt`: `text == document_text[start:end]`. Children point to a parent."""

    chunk_id: str
    ordinal: int
    text: str
    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]
    parent_id: str | None  # None for parents
    lead: str = ""  # how the document begins; empty for parents and the first child
