"""The native Tika build. It runs in a child process only: what it reads may be hostile.

Seen with iscc-tika 0.6: encrypted files give no text and no error, only a warning in the
metadata; a failure may end the stream early without an error; the string calls break characters
beyond U+FFFF, the stream is right; headers and footers of DOCX are left out unless asked for.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import iscc_tika

from services.ingest.parser.adapters.extraction import ExtractionError, Metadata

_READ_BYTES = 64 * 1024
_TAIL_BYTES = 64
_XML_TYPES = re.compile(r"^(?:application|text|image)/(?:[\w.-]+\+)?xml\b")


class NativeTika:
    """`Extractor` in this process."""

    def extract(self, path: Path, max_chars: int) -> tuple[Iterator[bytes], Metadata]:  # noqa: ARG002
        office = iscc_tika.OfficeParserConfig().set_include_headers_and_footers(True)
        extractor = iscc_tika.Extractor().set_xml_output(True).set_office_config(office)
        try:
            stream, metadata = extractor.extract_file(str(path))
        except Exception as exc:  # the binding raises whatever class the native side made
            raise ExtractionError(str(exc)) from exc
        return _pieces(stream), metadata

    def complaint(self, path: Path, max_chars: int) -> str:
        """The string call says what the stream call keeps to itself."""
        try:
            extractor = iscc_tika.Extractor().set_extract_string_max_length(max_chars)
            extractor.extract_file_to_string(str(path))
        except Exception as exc:  # noqa: BLE001 - any class, see above
            return str(exc)
        return ""

    def hides_failures(self, media_type: str) -> bool:
        """The stream forgets, now and then, that an XML parser failed."""
        return bool(_XML_TYPES.search(media_type))


def _pieces(stream: Any) -> Iterator[bytes]:
    tail = b""
    while piece := _read(stream):
        yield piece
        tail = (tail + piece)[-_TAIL_BYTES:]
    if tail and not tail.rstrip().endswith(b"</html>"):
        raise ExtractionError  # the native side failed in mid-document and did not say so


def _read(stream: Any) -> bytes:
    try:
        return bytes(stream.read(_READ_BYTES))
    except Exception as exc:
        raise ExtractionError(str(exc)) from exc
