"""Strict Office Open XML, which Tika's spreadsheet reader refuses, as the common kind."""

import re
import zipfile
from pathlib import Path

from services.ingest.parser.domain.unpacking import MAX_UNPACKED_BYTES

_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_TRANSITIONAL = rb"http://schemas.openxmlformats.org/\1/2006/"
_MAIN_PARTS = ("xl/workbook.xml", "word/document.xml", "ppt/presentation.xml")
_HEAD_BYTES = 4096


def is_strict(path: Path) -> bool:
    """Whether the file is an Office document of the strict kind."""
    try:
        with zipfile.ZipFile(path) as archive:
            main = next((part for part in _MAIN_PARTS if part in archive.namelist()), None)
            if main is None:
                return False
            with archive.open(main) as file:
                return _STRICT.search(file.read(_HEAD_BYTES)) is not None
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def write_transitional(path: Path, target: Path) -> None:
    """Copy the document with the namespaces of the common kind.

    Raises: ValueError beyond 500 MB unpacked; what `zipfile` raises for damaged files.
    """
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(target, "w") as copy:
        if sum(info.file_size for info in archive.infolist()) > MAX_UNPACKED_BYTES:
            raise ValueError("the document is too large when unpacked")
        for info in archive.infolist():
            data = archive.read(info)
            if info.filename.endswith((".xml", ".rels")):
                data = _STRICT.sub(_TRANSITIONAL, data)
            copy.writestr(info.filename, data)
