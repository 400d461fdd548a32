"""Citations: a closed set of evidence numbers, and the stream filter that enforces it."""

import re
from collections.abc import Collection

_MAX_MARKER_CHARS = 32
_MARKER = re.compile(
    r"[\[【]\s*\^?(?:(?:source|sources|来源|证据|资料)\s*[:：]?\s*)?"
    r"(\d+(?:\s*[,，、;；–-]\s*\d+)*)\s*[\]】]",
    re.IGNORECASE,
)
_MARKER_START = re.compile(
    r"[\[【][\s^]*[A-Za-z来源证据资料:：\s]{0,10}[\d\s,，、;；–-]*", re.IGNORECASE
)
_NUMBERS = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")


class CitationFilter:
    """Passes an answer's text on as it streams in, with citation markers checked on the way.

    `[2]`, `[2, 3]`, `[1-3]`, `【2】` and `[source 2]` all come out as `[2]`, one number a marker;
    numbers that were not given are dropped (with the space before them) and counted. A marker may
    be split over any number of pieces: what could become one is held back until it is decided.
    """

    def __init__(self, allowed: Collection[int]) -> None:
        self._allowed = frozenset(allowed)
        self._held = ""
        self.used: list[int] = []  # in order of first use
        self.unknown_count = 0

    def feed(self, piece: str) -> str:
        """The text that may be shown now."""
        text = self._held + piece
        cut = _undecided_from(text)
        self._held = text[cut:]
        return self._checked(text[:cut])

    def finish(self) -> str:
        """What was still held when the answer ended."""
        rest, self._held = self._held, ""
        return self._checked(rest)

    def _checked(self, text: str) -> str:
        return re.sub(rf"[ \t]*{_MARKER.pattern}", self._replace, text, flags=re.IGNORECASE)

    def _replace(self, match: re.Match[str]) -> str:
        known = []
        for number in _expand(match.group(1)):
            if number in self._allowed:
                known.append(number)
                if number not in self.used:
                    self.used.append(number)
            else:
                self.unknown_count += 1
        if not known:
            return ""
        space = match.group()[: len(match.group()) - len(match.group().lstrip(" \t"))]
        return space + "".join(f"[{number}]" for number in dict.fromkeys(known))


def unmarked(text: str) -> str:
    """A text of others in which nothing reads as a citation of ours: `[2]` becomes `(2)`.

    Papers number their own references so, and who writes a document could cite what he likes.
    """
    return _MARKER.sub(lambda match: f"({match.group()[1:-1]})", text)


def claims_of(answer: str, number: int) -> str:
    """The sentences of a finished answer that cite `[number]`, joined; '' when none does."""
    marker = f"[{number}]"
    pieces = re.split(r"(?<=[。！？!?\n])(?!\s*\[\d)|(?<=[.\]])\s+(?!\[\d)", answer)
    return " ".join(re.sub(r"\[\d+\]", "", piece) for piece in pieces if marker in piece).strip()


def _undecided_from(text: str) -> int:
    """Index from which the text might be, or lead to, an unfinished marker."""
    start = max(text.rfind("["), text.rfind("【"))
    if start >= 0 and not re.search(r"[\]】]", text[start:]):
        tail = text[start:]
        if len(tail) <= _MAX_MARKER_CHARS and _MARKER_START.fullmatch(tail):
            return _before_spaces(text, start)
    return _before_spaces(text, len(text))


def _before_spaces(text: str, end: int) -> int:
    return len(text[:end].rstrip(" \t"))


def _expand(numbers: str) -> list[int]:
    result: list[int] = []
    for match in _NUMBERS.finditer(numbers):
        first, last = int(match.group(1)), int(match.group(2) or match.group(1))
        result += range(first, last + 1) if first <= last < first + 20 else [first, last]
    return result
