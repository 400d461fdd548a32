"""The document model as `document.json`; its text lies beside it in `text.txt`."""

from dataclasses import dataclass
from typing import Any

import orjson

from libs.documents.model import Block, BlockKind, ParsedDocument
from libs.kernel import PermanentError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class DocumentFiles:
    """The two stored forms of a parsed document, both UTF-8."""

    document: bytes  # everything but the text
    text: bytes


def dump_document(document: ParsedDocument) -> DocumentFiles:
    """The stored forms. Blocks are `[kind, start, end, page, level]`."""
    fields: dict[str, Any] = {
        "version": _VERSION,
        "char_count": len(document.text),
        "media_type": document.media_type,
        "title": document.title,
        "language": document.language,
        "page_count": document.page_count,
        "table_count": document.table_count,
        "warnings": document.warnings,
        "blocks": [[b.kind, b.start, b.end, b.page, b.level] for b in document.blocks],
    }
    return DocumentFiles(orjson.dumps(fields), document.text.encode())


def load_document(files: DocumentFiles) -> ParsedDocument:
    """The document that was dumped.

    Raises: PermanentError `damaged-parse` when the two files do not belong together.
    """
    try:
        fields = orjson.loads(files.document)
        text = files.text.decode()
        _expect_match(fields, text)
        blocks = [
            Block(BlockKind(kind), start, end, page, level)
            for kind, start, end, page, level in fields["blocks"]
        ]
        return ParsedDocument(
            text=text,
            blocks=blocks,
            media_type=fields["media_type"],
            title=fields["title"],
            language=fields["language"],
            page_count=fields["page_count"],
            table_count=fields["table_count"],
            warnings=fields["warnings"],
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise PermanentError(
            "damaged-parse", "The stored parse cannot be read: parse the document again."
        ) from exc


def _expect_match(fields: dict[str, Any], text: str) -> None:
    if fields["version"] != _VERSION or fields["char_count"] != len(text):
        raise ValueError("document.json and text.txt do not match")
