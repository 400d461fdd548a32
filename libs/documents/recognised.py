"""Lines that text recognition found on a picture, put in reading order and together again."""

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from libs.documents.builder import BlockBuilder
from libs.documents.model import BlockKind
from libs.documents.tables import join_rows

_CJK = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_SPACE_IN_CHINESE = re.compile(rf"(?<=[{_CJK}]) +(?=[{_CJK}])")
_MIN_COLUMN_LINES = 4
_MIN_COLUMN_SHARE = 0.3  # of the text's width: narrower ones are a table's
_PARAGRAPH_GAP = 0.9  # of a line's height
_MIN_TABLE_ROWS = 3


@dataclass(frozen=True, slots=True)
class RecognisedLine:
    """A line with its box in pixels; y grows downwards."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    @property
    def height(self) -> float:
        return self.bottom - self.top


def add_recognised(lines: Sequence[RecognisedLine], builder: BlockBuilder) -> None:
    """Add what a picture says: columns one after the other, cells of a row side by side."""
    for column in _columns(lines):
        rows = list(_rows(column))
        for kind, group in _groups(rows):
            if kind is BlockKind.TABLE:
                cells = [[join_chinese(cell.text) for cell in row] for row in group]
                builder.add(BlockKind.TABLE, join_rows(cells))
            else:
                text = "\n".join(" ".join(cell.text for cell in row) for row in group)
                builder.add(BlockKind.PARAGRAPH, join_chinese(text))


def join_chinese(text: str) -> str:
    """Without the spaces that recognition puts between Chinese characters."""
    return _SPACE_IN_CHINESE.sub("", text)


def _columns(lines: Sequence[RecognisedLine]) -> Iterator[list[RecognisedLine]]:
    """Runs to be read one after the other; a line across both columns parts what is around it."""
    ordered = sorted(lines, key=lambda line: (line.top, line.left))
    gutter = _gutter(ordered)
    if gutter is None:
        yield ordered
        return
    left: list[RecognisedLine] = []
    right: list[RecognisedLine] = []
    for line in ordered:
        if line.left < gutter < line.right:
            yield from (left, right, [line])
            left, right = [], []
        else:
            (left if line.right <= gutter else right).append(line)
    yield from (left, right)


def _gutter(lines: Sequence[RecognisedLine]) -> float | None:
    """Where two columns of running text meet."""
    if len(lines) < 2 * _MIN_COLUMN_LINES:
        return None
    start, end = min(line.left for line in lines), max(line.right for line in lines)
    width = end - start
    candidates = sorted(
        {line.left - 1 for line in lines if 0.35 < (line.left - start) / width < 0.65}
        if width > 0
        else ()
    )

    def crossing(at: float) -> int:
        return sum(line.left < at < line.right for line in lines)

    for at in sorted(candidates, key=crossing):
        sides = [
            [line for line in lines if line.right <= at],
            [line for line in lines if line.left >= at],
        ]
        if all(len(side) >= _MIN_COLUMN_LINES for side in sides) and all(
            statistics.median(line.right - line.left for line in side) >= _MIN_COLUMN_SHARE * width
            for side in sides
        ):
            return at
        break
    return None


def _rows(lines: Sequence[RecognisedLine]) -> Iterator[list[RecognisedLine]]:
    """Lines side by side belong to one row."""
    row: list[RecognisedLine] = []
    for line in lines:
        middle = (line.top + line.bottom) / 2
        if row and not row[0].top < middle < row[0].bottom:
            yield sorted(row, key=lambda cell: cell.left)
            row = []
        row.append(line)
    if row:
        yield sorted(row, key=lambda cell: cell.left)


def _groups(
    rows: Sequence[list[RecognisedLine]],
) -> Iterator[tuple[BlockKind, list[list[RecognisedLine]]]]:
    """Paragraphs, parted by white space, and runs of rows with equally many cells: tables."""
    at = 0
    paragraph: list[list[RecognisedLine]] = []
    while at < len(rows):
        end = at
        while len(rows[at]) > 1 and end < len(rows) and len(rows[end]) == len(rows[at]):
            end += 1
        if end - at >= _MIN_TABLE_ROWS:
            yield from _flushed(paragraph)
            paragraph = []
            yield BlockKind.TABLE, list(rows[at:end])
            at = end
            continue
        if paragraph and _parted(paragraph[-1], rows[at]):
            yield from _flushed(paragraph)
            paragraph = []
        paragraph.append(rows[at])
        at += 1
    yield from _flushed(paragraph)


def _flushed(
    paragraph: list[list[RecognisedLine]],
) -> Iterator[tuple[BlockKind, list[list[RecognisedLine]]]]:
    if paragraph:
        yield BlockKind.PARAGRAPH, paragraph


def _parted(row: Sequence[RecognisedLine], following: Sequence[RecognisedLine]) -> bool:
    gap = min(line.top for line in following) - max(line.bottom for line in row)
    return gap > _PARAGRAPH_GAP * min(row[0].height, following[0].height)
