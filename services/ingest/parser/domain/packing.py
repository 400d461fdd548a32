"""A parsed document with its counts, ready to be stored."""

from libs.documents.model import BlockKind, ParsedDocument
from libs.documents.serialise import dump_document
from services.ingest.parser.domain.accounting import row_count
from services.ingest.parser.ports import Parsed


def pack_document(document: ParsedDocument) -> Parsed:
    """The stored forms and the counts that the document's record shows."""
    blocks = sum(block.kind is not BlockKind.PAGE_BREAK for block in document.blocks)
    return Parsed(
        files=dump_document(document),
        media_type=document.media_type,
        char_count=len(document.text),
        block_count=blocks,
        table_count=document.table_count,
        row_count=row_count(document.text, document.blocks),
        page_count=document.page_count,
        warning_count=len(document.warnings),
    )
