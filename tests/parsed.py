"""Parsed documents: made from text, and as tests compare them."""

from libs.documents.markdown import read_markdown
from libs.documents.model import ParsedDocument
from libs.documents.plain import read_plain


def plain(source: str) -> ParsedDocument:
    text, blocks = read_plain(source)
    return ParsedDocument(text, blocks, "text/plain")


def markdown(source: str) -> ParsedDocument:
    text, blocks = read_markdown(source)
    return ParsedDocument(text, blocks, "text/markdown")


def shape(document: ParsedDocument) -> list[tuple[str, str]]:
    """Each block: its kind, or the level of a heading, and its text."""
    return [
        (f"h{b.level}" if b.level else b.kind.value, document.text[b.start : b.end])
        for b in document.blocks
    ]
