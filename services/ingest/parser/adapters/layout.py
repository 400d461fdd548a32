"""What a PDF page shows beside its text: heights of letters and ruled tables, by pdfium."""

import ctypes
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium

from libs.documents.page_layout import PageLayout, Ruling, SizedLine, grids
from services.ingest.parser.adapters.pdf_pages import open_pages

_MAX_RULINGS = 1000  # more are a drawing
_MAX_LINE_CHARS = 120  # longer lines are no headings
_THIN = 3.0  # points


def page_layouts(path: Path) -> dict[int, PageLayout]:
    """The layouts of the pages by their numbers, from 1; damaged pages are left out.

    Raises: `pypdfium2.PdfiumError` for damaged files.
    """
    return {number: _layout(page) for number, page in open_pages(path)}


def _layout(page: pypdfium2.PdfPage) -> PageLayout:
    try:
        text = page.get_textpage()
    except pypdfium2.PdfiumError:
        return PageLayout([], [])
    try:
        return PageLayout(list(_lines(text)), list(_tables(page, text)))
    finally:
        text.close()


def _lines(text: pypdfium2.PdfTextPage) -> Iterator[SizedLine]:
    """Each line with the height of its letters (from the font, not from the single letter)."""
    start = 0
    box = pdfium.FS_RECTF()
    for line in text.get_text_range().split("\n"):
        bare = line.strip()
        if bare:
            first = start + line.index(bare[0])
            heights = []
            for at in (first, first + len(bare) // 2, first + len(bare) - 1):
                char = pdfium.FPDFText_GetCharIndexFromTextIndex(text, at)
                pdfium.FPDFText_GetLooseCharBox(text, char, ctypes.byref(box))
                heights.append(abs(box.top - box.bottom))
            yield SizedLine(bare[:_MAX_LINE_CHARS], round(min(heights), 1), len(bare))
        start += len(line) + 1


def _tables(page: pypdfium2.PdfPage, text: pypdfium2.PdfTextPage) -> Iterator[list[list[str]]]:
    rulings = list(islice(_rulings(page), _MAX_RULINGS + 1))
    if len(rulings) > _MAX_RULINGS:
        return
    for grid in grids(rulings):
        rows = [[_cell(text, *box) for box in row] for row in grid]
        if sum(any(row) for row in rows) > 1:
            yield [row for row in rows if any(row)]


def _cell(text: pypdfium2.PdfTextPage, left: float, bottom: float, right: float, top: float) -> str:
    return " ".join(text.get_text_bounded(left, bottom, right, top).split())


def _rulings(page: pypdfium2.PdfPage) -> Iterator[Ruling]:
    """Straight lines along the page's edges: strokes, and rectangles too thin to be boxes."""
    for item in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_PATH], max_depth=3):
        left, bottom, right, top = item.get_bounds()
        if right - left <= _THIN or top - bottom <= _THIN:
            edges = [(left, bottom, right, top)]
        else:
            edges = list(_edges(item))
        for x0, y0, x1, y1 in edges:
            if abs(y1 - y0) <= _THIN < abs(x1 - x0):
                yield Ruling((y0 + y1) / 2, min(x0, x1), max(x0, x1), horizontal=True)
            elif abs(x1 - x0) <= _THIN < abs(y1 - y0):
                yield Ruling((x0 + x1) / 2, min(y0, y1), max(y0, y1), horizontal=False)


def _edges(item: pypdfium2.PdfObject) -> Iterator[tuple[float, float, float, float]]:
    """The straight segments of a path, on the page."""
    matrix = item.get_matrix()
    x, y = ctypes.c_float(), ctypes.c_float()
    at = begun = (0.0, 0.0)
    for n in range(pdfium.FPDFPath_CountSegments(item)):
        segment = pdfium.FPDFPath_GetPathSegment(item, n)
        pdfium.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
        point = matrix.on_point(x.value, y.value)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_LINETO:
            yield (*at, *point)
        elif kind == pdfium.FPDF_SEGMENT_MOVETO:
            begun = point
        at = point
        if pdfium.FPDFPathSegment_GetClose(segment):
            yield (*at, *begun)
            at = begun
