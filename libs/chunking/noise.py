"""How much of a text is not what its author wrote: bad characters, broken lines, page furniture."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from libs.documents.model import BlockKind, ParsedDocument

_PROSE = {BlockKind.PARAGRAPH, BlockKind.HEADING}
_ENDS = tuple(".。！？!?…：:；;”\"'）)」』|")
_DIGITS = re.compile(r"\d+")
_SHORT_LINE_CHARS = 25
_FURNITURE_LINE_CHARS = 80
_FURNITURE_REPEATS = 4
_ENOUGH_LINES = 20
_ODD_CATEGORIES = {"Cc", "Cn", "Co", "Cs"}
_HALF, _TENTH, _FIFTIETH = 0.5, 0.1, 0.02


@dataclass(frozen=True, slots=True)
class Noise:
    """Shares in [0, 1]."""

    odd_characters: float  # of all visible: replacement, private, control, unassigned ones
    broken_lines: float  # of the lines of prose: short, without an end mark, amid a paragraph
    repeated_lines: float  # of the lines of prose: headers and footers, page numbers aside

    @property
    def is_high(self) -> bool:
        """Whether the document's own structure is no good guide any more."""
        return (
            self.odd_characters > _FIFTIETH
            or self.broken_lines > _HALF
            or self.repeated_lines > _TENTH
        )


def noise_of(document: ParsedDocument, max_chars: int) -> Noise:
    """Judged by the first `max_chars` characters."""
    characters = Counter(document.text[:max_chars])
    visible = sum(n for char, n in characters.items() if not char.isspace())
    odd = sum(n for char, n in characters.items() if _is_odd(char))
    lines = list(_lines(document, max_chars))
    if len(lines) < _ENOUGH_LINES:
        return Noise(round(odd / max(visible, 1), 4), 0.0, 0.0)
    broken = sum(inside and _is_broken(line) for line, inside in lines)
    short = Counter(_DIGITS.sub("#", line) for line, _ in lines if _may_be_furniture(line))
    repeated = sum(n for n in short.values() if n >= _FURNITURE_REPEATS)
    return Noise(
        odd_characters=round(odd / max(visible, 1), 4),
        broken_lines=round(broken / len(lines), 4),
        repeated_lines=round(repeated / len(lines), 4),
    )


def _lines(document: ParsedDocument, max_chars: int) -> Iterator[tuple[str, bool]]:
    """Each line of prose, and whether its paragraph goes on after it."""
    for block in document.blocks:
        if block.start >= max_chars:
            return
        if block.kind in _PROSE:
            lines = document.text[block.start : min(block.end, max_chars)].split("\n")
            for at, line in enumerate(lines):
                if line.strip():
                    yield line.strip(), at < len(lines) - 1


def _is_broken(line: str) -> bool:
    return len(line) <= _SHORT_LINE_CHARS and not line.endswith(_ENDS)


def _may_be_furniture(line: str) -> bool:
    return len(line) <= _FURNITURE_LINE_CHARS and not line.endswith(_ENDS)


def _is_odd(char: str) -> bool:
    if char == "\ufffd":
        return True
    return not char.isspace() and unicodedata.category(char) in _ODD_CATEGORIES
