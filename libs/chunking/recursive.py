"""Cuts a span at its best inner borders: blank line, sentence, line, clause, space, anywhere."""

import re
import unicodedata
from collections.abc import Iterator

# Best first. A match's end is where the next piece begins.
_BORDERS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\n\s*\n",
        r"[。！？!?…]+[”’」』）)\"']*\s*|(?<![A-Z\s.])(?<!\b(?:Mr|Dr|vs|No))(?<!\bMrs)\.[\"')\]]*\s+",
        r"\n",
        r"[；;，,、：:]\s*",
        r"\s+",
    )
)


def split_span(text: str, start: int, end: int, max_chars: int) -> list[tuple[int, int]]:
    """Pieces of `text[start:end]`, each at most `max_chars` long and without white ends.

    Together they hold every visible character once, in order. Pieces come out about equally
    long. Linear: each step looks at one window and moves on by a good part of it.
    """
    pieces: list[tuple[int, int]] = []
    start, end = _strip(text, start, end)
    while end - start > max_chars:
        count = -(-(end - start) // max_chars)
        target = -(-(end - start) // count)
        cut = _best_cut(text, start, min(start + max_chars, end), start + target)
        pieces += _stripped(text, start, cut)
        start, end = _strip(text, cut, end)
    pieces += _stripped(text, start, end)
    return pieces


def split_lines(text: str, start: int, end: int, max_chars: int) -> list[tuple[int, int]]:
    """Pieces made of whole lines (table rows, code); a line too long is cut as text is."""
    pieces: list[tuple[int, int]] = []
    begin = position = start
    for line_end in _line_ends(text, start, end):
        if line_end - begin > max_chars:
            if position > begin:
                pieces.append((begin, position))
            begin = position
            if line_end - begin > max_chars:
                pieces += split_span(text, begin, line_end, max_chars)
                begin = line_end
        position = line_end
    if position > begin:
        pieces.append((begin, position))
    return [piece for begin, last in pieces for piece in _stripped(text, begin, last, "\n")]


def _best_cut(text: str, start: int, limit: int, target: int) -> int:
    earliest = start + (target - start) // 2
    for border in _BORDERS:
        cuts = [
            match.end()
            for match in border.finditer(text, start, limit)
            if earliest <= match.end() <= limit
        ]
        if cuts:
            return min(cuts, key=lambda cut: abs(cut - target))
    return _between_characters(text, start, limit)


def _between_characters(text: str, start: int, limit: int) -> int:
    """The last place up to `limit` that does not part a letter from its marks."""
    cut = limit
    while cut > start + 1 and cut < len(text) and _joins(text[cut - 1], text[cut]):
        cut -= 1
    return cut if cut > start + 1 else limit


def can_cut(text: str, at: int) -> bool:
    """Whether a cut here leaves every letter its marks."""
    return not 0 < at < len(text) or not _joins(text[at - 1], text[at])


def _joins(left: str, right: str) -> bool:
    joiner = "\u200d"
    return (
        joiner in {left, right}
        or unicodedata.combining(right) != 0
        or "\ufe00" <= right <= "\ufe0f"
        or "\U0001f3fb" <= right <= "\U0001f3ff"
    )


def _line_ends(text: str, start: int, end: int) -> Iterator[int]:
    while start < end:
        found = text.find("\n", start, end)
        start = end if found < 0 else found + 1
        yield start


def _strip(text: str, start: int, end: int, blanks: str | None = None) -> tuple[int, int]:
    def blank(at: int) -> bool:
        return text[at].isspace() if blanks is None else text[at] in blanks

    while start < end and blank(start):
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _stripped(
    text: str, start: int, end: int, blanks: str | None = None
) -> Iterator[tuple[int, int]]:
    start, end = _strip(text, start, end, blanks)
    if start < end:
        yield start, end
