"""Where a passage lies in the set's own file.

The platform's text is not the file byte for byte (markup, white space), so both are compared by
their letters and digits alone.
"""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path

from services.cli.evaluation.sets import Reference

ENOUGH = 0.5  # of the reference, or of the passage, must lie in the other

Span = tuple[int, int]


class SourceText:
    """A text file of the set as letters and digits."""

    def __init__(self, file: Path) -> None:
        text = file.read_bytes().decode("utf-8", "replace")
        letters = [squash(character) for character in text]
        self._letters = "".join(letters)
        self._before = [0, *accumulate(map(len, letters))]
        self._places: dict[str, list[Span]] = {}

    def span(self, reference: Reference) -> list[Span]:
        """Where the reference lies: at its offset, or wherever its text stands."""
        if reference.start is None:
            return self.places(reference.text)
        end = reference.start + len(reference.text)
        return [(self._before[reference.start], self._before[min(end, len(self._before) - 1)])]

    def places(self, text: str) -> list[Span]:
        """Every place of a passage; none when its text was changed on the way."""
        if text not in self._places:
            self._places[text] = list(self._all(squash(text)))
        return self._places[text]

    def _all(self, letters: str) -> Iterator[Span]:
        start = self._letters.find(letters) if letters else -1
        while start >= 0:
            yield start, start + len(letters)
            start = self._letters.find(letters, start + 1)


def squash(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


class Matcher:
    """Tells which references a passage of a document finds."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = files
        self._sources: dict[str, SourceText] = {}

    def finds(self, document: str, text: str, page: int | None, reference: Reference) -> bool:
        """Whether a passage (its text, and the page it begins on) answers for a reference."""
        if document != reference.document:
            return False
        if reference.page is not None:
            return page == reference.page
        source = self._source(document)
        wanted = source.span(reference)
        return any(_enough(a, b) for a in source.places(text) for b in wanted)

    def _source(self, document: str) -> SourceText:
        if document not in self._sources:
            self._sources[document] = SourceText(self._files[document])
        return self._sources[document]


def _enough(a: Span, b: Span) -> bool:
    common = min(a[1], b[1]) - max(a[0], b[0])
    return common > 0 and common >= ENOUGH * min(a[1] - a[0], b[1] - b[0])
