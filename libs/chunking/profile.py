"""What a chunk plan is chosen by: a document's type, headings, lengths, tables, noise, language."""

import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from libs.chunking.noise import Noise, noise_of
from libs.documents.language import language_of
from libs.documents.model import BlockKind, ParsedDocument

_SAMPLE_CHARS = 200_000
_TYPE_SAMPLE_CHARS = 20_000
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class DocumentType(StrEnum):
    CONTRACT = "contract"
    POLICY = "policy"
    MANUAL = "manual"
    PAPER = "paper"
    TABLE = "table"
    SLIDES = "slides"
    MAIL = "mail"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Profile:
    document_type: DocumentType
    language: str  # zh or en: which of the two scripts prevails
    char_count: int
    block_count: int
    heading_count: int
    heading_depth: int  # how many levels of headings are in use
    block_chars_median: int
    block_chars_p90: int
    longest_block_chars: int
    table_share: float  # of all characters, in [0, 1]
    latin_share: float  # of the letters that are Latin or Chinese/Japanese/Korean, in [0, 1]
    noise: Noise


def profile_of(document: ParsedDocument) -> Profile:
    """Counts over all blocks; scripts, type and noise are judged by the text's beginning.

    Linear in the number of blocks; of the text at most 200 000 characters are looked at.
    """
    sizes = [
        (block.kind, block.end - block.start)
        for block in document.blocks
        if block.kind is not BlockKind.PAGE_BREAK
    ]
    ordered = sorted(size for _, size in sizes) or [0]
    sample = document.text[:_SAMPLE_CHARS]
    latin, wide = len(_LATIN.findall(sample)), len(_WIDE.findall(sample))
    kinds = Counter(kind for kind, _ in sizes)
    levels = {block.level or 1 for block in document.blocks if block.kind is BlockKind.HEADING}
    table_chars = sum(size for kind, size in sizes if kind is BlockKind.TABLE)
    table_share = table_chars / max(len(document.text), 1)
    headings = kinds[BlockKind.HEADING]
    return Profile(
        document_type=_type_of(document, table_share, headings, len(levels)),
        language=language_of(sample),
        char_count=len(document.text),
        block_count=len(sizes),
        heading_count=headings,
        heading_depth=len(levels),
        block_chars_median=ordered[len(ordered) // 2],
        block_chars_p90=ordered[len(ordered) * 9 // 10],
        longest_block_chars=ordered[-1],
        table_share=round(table_share, 4),
        latin_share=round(latin / max(latin + wide, 1), 4),
        noise=noise_of(document, _SAMPLE_CHARS),
    )


# What a format alone tells, by a part of its media type.
_FORMATS = {
    "rfc822": DocumentType.MAIL,
    "mbox": DocumentType.MAIL,
    "ms-outlook": DocumentType.MAIL,
    "presentation": DocumentType.SLIDES,
    "powerpoint": DocumentType.SLIDES,
    "spreadsheet": DocumentType.TABLE,
    "ms-excel": DocumentType.TABLE,
    "csv": DocumentType.TABLE,
}
_ARTICLE = re.compile(
    r"^[ \t\u3000#]*(?:第[一二三四五六七八九十百\d]+条|(?:Article|Section|§)\s*\d+)", re.MULTILINE
)
_CONTRACT = re.compile(
    r"甲方|乙方|(?i:\bhereinafter\b|\bwhereas\b|\bthe parties\b|\bthis agreement\b)"
)
_POLICY = re.compile(
    r"(?:制度|规定|办法|条例|细则|守则|规范)\b"
    r"|(?i:\bpolic(?:y|ies)\b|\bregulations?\b|\bcode of conduct\b)"
)
_ABSTRACT = re.compile(r"^[\s#*]*(?:abstract|摘\s*要)\b", re.IGNORECASE | re.MULTILINE)
_REFERENCES = re.compile(
    r"^[\s#*\d.]*(?:references|bibliography|参考文献)\b", re.IGNORECASE | re.MULTILINE
)
_FEW = 3  # of a kind of sign make a document of that kind
_MANUAL_HEADINGS = 6


def _type_of(
    document: ParsedDocument, table_share: float, headings: int, depth: int
) -> DocumentType:
    """By format, then by share of tables, then by what such documents say of themselves."""
    for part, kind in _FORMATS.items():
        if part in document.media_type:
            return kind
    if table_share > 0.5:
        return DocumentType.TABLE
    text = document.text[:_TYPE_SAMPLE_CHARS]
    top = f"{document.title or ''}\n{text[:300]}"
    if len(_CONTRACT.findall(text)) > _FEW:
        return DocumentType.CONTRACT
    if _ABSTRACT.search(text[:5_000]) and _REFERENCES.search(document.text[:_SAMPLE_CHARS]):
        return DocumentType.PAPER
    if len(_ARTICLE.findall(text)) >= _FEW or _POLICY.search(top):
        return DocumentType.POLICY
    if headings >= _MANUAL_HEADINGS and depth > 1:
        return DocumentType.MANUAL
    return DocumentType.PLAIN
