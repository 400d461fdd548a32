"""The document model as `document.json`; its text lies beside it in `text.txt`."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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


@dataclass(frozen=True, slots=True)
class Outline:
    """A parsed document without its text, and some of its blocks."""

    char_count: int
    title: str | None
    language: str | None
    page_count: int | None
    table_count: int
    warnings: list[str]
    block_count: int  # of the whole document
    blocks: list[Block]


def load_outline(document: bytes, *, first: int, limit: int) -> Outline:
    """What `document.json` says by itself, with up to `limit` blocks from number `first` on.

    Raises: PermanentError `damaged-parse`.
    """
    with _damage_named():
        fields = orjson.loads(document)
        blocks = fields["blocks"]
        return Outline(
            char_count=fields["char_count"],
            title=fields["title"],
            language=fields["language"],
            page_count=fields["page_count"],
            table_count=fields["table_count"],
            warnings=fields["warnings"],
            block_count=len(blocks),
            blocks=_blocks(blocks[first : first + limit]),
        )


def load_document(files: DocumentFiles) -> ParsedDocument:
    """The document that was dumped.

    Raises: PermanentError `damaged-parse` when the two files do not belong together.
    """
    with _damage_named():
        fields = orjson.loads(files.document)
        text = files.text.decode()
        _expect_match(fields, text)
        return ParsedDocument(
            text=text,
            blocks=_blocks(fields["blocks"]),
            media_type=fields["media_type"],
            title=fields["title"],
            language=fields["language"],
            page_count=fields["page_count"],
            table_count=fields["table_count"],
            warnings=fields["warnings"],
        )


def _blocks(stored: Iterable[Any]) -> list[Block]:
    return [
        Block(BlockKind(kind), start, end, page, level) for kind, start, end, page, level in stored
    ]


@contextmanager
def _damage_named() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError) as exc:
        raise PermanentError(
            "damaged-parse", "The stored parse cannot be read: parse the document again."
        ) from exc


def _expect_match(fields: dict[str, Any], text: str) -> None:
    if fields["version"] != _VERSION or fields["char_count"] != len(text):
        raise ValueError("document.json and text.txt do not match")
