"""What reads a file for us: Tika's native build in this process, or a Tika server."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

Metadata = Mapping[str, Sequence[str]]


class ExtractionError(Exception):
    """The file cannot be read; the text is Tika's own."""


class Extractor(Protocol):
    """Raises (every method): TransientError when it cannot work now, whatever the file is."""

    def extract(self, path: Path, max_chars: int) -> tuple[Iterator[bytes], Metadata]:
        """The file as XHTML, in pieces, and its metadata.

        Raises: ExtractionError, the pieces too; PermanentError (`too-large`, `parse-timeout`).
        """
        ...

    def complaint(self, path: Path, max_chars: int) -> str:
        """What is wrong with the file, as Tika says when asked anew; '' for nothing."""
        ...

    def hides_failures(self, media_type: str) -> bool:
        """Whether an `extract` that went well says nothing about files of this type."""
        ...
