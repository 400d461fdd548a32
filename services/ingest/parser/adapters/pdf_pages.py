"""Pages of a PDF file one at a time, in memory that does not grow with the file."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pypdfium2

_HELD_BYTES = 50_000_000  # of the file; pdfium keeps what it has read until the file is closed


def open_pages(
    path: Path, numbers: Iterable[int] | None = None
) -> Iterator[tuple[int, pypdfium2.PdfPage]]:
    """Each page (from 1), or those with these numbers, open until the next one is asked for.

    Damaged pages are left out. Raises: `pypdfium2.PdfiumError` for damaged files.
    """
    document = pypdfium2.PdfDocument(path)
    try:
        count = len(document)
        page_bytes = path.stat().st_size / max(count, 1)
        held = 0.0
        for number in range(1, count + 1) if numbers is None else sorted(numbers):
            if number > count:
                break
            if held > _HELD_BYTES:
                document.close()
                document, held = pypdfium2.PdfDocument(path), 0.0
            try:
                page = document[number - 1]
            except pypdfium2.PdfiumError:  # one damaged page says nothing about the others
                continue
            try:
                yield number, page
            finally:
                page.close()
            held += page_bytes
    finally:
        document.close()
