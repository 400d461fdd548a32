"""Sentences of English and Chinese text as exact spans, so that a quotation keeps its offsets."""

import re

MAX_SENTENCE_CHARS = 400

_CLOSING = "\"'”’」』）)\\]】"
_BREAK = re.compile(
    rf"(?:[。！？!?…]+|；(?=\n)|(?<=[^\s])\.(?=[{_CLOSING}]*(?:\s|$)))[{_CLOSING}]*"  # end marks
    r"|\n\s*\n"  # paragraphs
    r"|\n(?=\s*(?:[-*•·●▪#|]|\d{1,3}[.)、]|[（(]?[一二三四五六七八九十]{1,3}[）)、]))"  # list items
    r"|(?<=\|)[^|\n]*\n|\n(?=[^\n|]*\|)"  # table rows
    r"|(?<![：:])\n(?=[^\n：:。.，,]{1,14}[：:])"  # lines of a form, `name: value`
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|No|Nos|vs|etc|e\.g|i\.e|cf|al|Fig|Eq|Sec|Inc|Ltd|Co|Corp|"
    r"Dept|approx|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)|\b[A-Z]|\d)$"
)
_SOFT_BREAK = re.compile(r"[；;，,：:]\s*|\s+")


def sentence_spans(text: str, *, max_chars: int = MAX_SENTENCE_CHARS) -> list[tuple[int, int]]:
    """(start, end) of each sentence in order; none is blank, none begins or ends with a space.

    Paragraphs, list items and table rows end a sentence too; a line break inside a paragraph does
    not. Longer runs than `max_chars` are cut at the last comma or space before the limit.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _BREAK.finditer(text):
        if match.end() <= start or _abbreviates(text, start, match):
            continue
        spans += _bounded(text, start, match.end(), max_chars)
        start = match.end()
    return spans + _bounded(text, start, len(text), max_chars)


def _abbreviates(text: str, start: int, match: re.Match[str]) -> bool:
    if match.group()[0] != ".":
        return False
    before = text[max(start, match.start() - 8) : match.start()]
    following = text[match.end() : match.end() + 2].lstrip()
    if not _ABBREVIATION.search(before):
        return False
    # "Ltd. The" ends a sentence as likely as not; "Ltd. established" and "Dr. Who" do not.
    return not (re.search(r"(?:Inc|Ltd|Co|Corp|etc|\d)$", before) and following[:1].isupper())


def _bounded(text: str, start: int, end: int, max_chars: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    while True:
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip())
        end -= len(piece) - len(piece.rstrip()) if piece.strip() else 0
        if end - start <= max_chars:
            return [*spans, (start, end)] if start < end else spans
        cut = start + _cut(text[start : start + max_chars])
        spans.append((start, start + len(text[start:cut].rstrip())))
        start = cut


def _cut(window: str) -> int:
    breaks = [match.end() for match in _SOFT_BREAK.finditer(window, len(window) // 2)]
    return breaks[-1] if breaks else len(window)
