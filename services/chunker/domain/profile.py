"""What a chunk plan is chosen by."""

import re
from dataclasses import dataclass

from libs.documents.model import BlockKind, ParsedDocument

_SAMPLE_CHARS = 200_000
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Profile:
    char_count: int
    block_count: int
    heading_count: int
    longest_block_chars: int
    table_share: float  # of all characters, in [0, 1]
    latin_share: float  # of the letters that are Latin or Chinese/Japanese/Korean, in [0, 1]


def profile_of(document: ParsedDocument) -> Profile:
    """Counts over the blocks; scripts are judged by the first 200 000 characters."""
    sizes = [(block.kind, block.end - block.start) for block in document.blocks]
    sample = document.text[:_SAMPLE_CHARS]
    latin, wide = len(_LATIN.findall(sample)), len(_WIDE.findall(sample))
    table_chars = sum(size for kind, size in sizes if kind is BlockKind.TABLE)
    return Profile(
        char_count=len(document.text),
        block_count=len(sizes),
        heading_count=sum(kind is BlockKind.HEADING for kind, _ in sizes),
        longest_block_chars=max((size for _, size in sizes), default=0),
        table_share=table_chars / max(len(document.text), 1),
        latin_share=latin / max(latin + wide, 1),
    )
