"""Rows of cells as text: a row a line, cells joined by ` | `."""

import csv
import io
import sys
from collections.abc import Iterable, Sequence

from libs.documents.normalise import normalise_text

CELL_SEPARATOR = " | "
_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 50


def join_rows(rows: Iterable[Sequence[str]]) -> str:
    """One line per row that is not blank; blank cells at its end are left out."""
    lines = []
    for row in rows:
        cells = [" ".join(cell.split()) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            lines.append(CELL_SEPARATOR.join(cells))
    return "\n".join(lines)


def read_csv(source: str) -> str:
    """The rows of a CSV or TSV file, whatever its delimiter is, as table text."""
    csv.field_size_limit(sys.maxsize)
    text = normalise_text(source)
    return join_rows(csv.reader(io.StringIO(text), delimiter=guess_delimiter(text)))


def guess_delimiter(text: str) -> str:
    """The delimiter that cuts most of the first lines into the same number of cells, > 1."""
    lines = [line for line in text.split("\n", _SAMPLE_LINES)[:_SAMPLE_LINES] if line.strip()]

    def score(delimiter: str) -> tuple[int, int]:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        best = max(set(widths), key=widths.count, default=1)
        return (widths.count(best), best) if best > 1 else (0, 0)

    return max(_DELIMITERS, key=score)
