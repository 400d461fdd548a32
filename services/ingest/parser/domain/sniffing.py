"""What a file is, by its first bytes before its name: names lie, and archives must not open."""

import re
import zipfile
from enum import StrEnum
from pathlib import Path, PurePath

from services.ingest.parser.domain.refusals import refusal
from services.ingest.parser.domain.unpacking import is_bomb

_HEAD_BYTES = 8192
_IMAGES = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"II*\0", b"MM\0*", b"BM", b"\0\0\x01\0")
# Header lines from the first line on, one of them a mail's own.
_MAIL = re.compile(
    rb"(?:[A-Za-z][\w-]*:[^\n]*\n(?:[ \t][^\n]*\n)*){0,50}?"
    rb"(?:From|Received|Return-Path|Message-ID|MIME-Version|Delivered-To):",
    re.IGNORECASE,
)
_WEBP = re.compile(rb"RIFF.{4}WEBP", re.DOTALL)
COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ")
_7Z = b"7z\xbc\xaf\x27\x1c"
_7Z_AES = b"\x06\xf1\x07\x01"  # the id of its encryption, in the list at the end of the file
_NOT_UNPACKED = (_7Z, b"Rar!", b"\x28\xb5\x2f\xfd")
_TAIL_BYTES = 65_536
_BINARIES = (b"%PDF", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"{\\rtf")
# Members that make a ZIP file a document.
_DOCUMENT_MEMBERS = (
    "[content_types].xml",
    "mimetype",
    "meta-inf/container.xml",
    "index/",
    "index.zip",
    "index.apxl",
    "index.xml",
)

_BY_SUFFIX = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "plain",
    ".text": "plain",
    ".log": "plain",
    ".rst": "plain",
    ".org": "plain",
    ".vtt": "plain",
    ".srt": "plain",
}
_BY_MEDIA_TYPE = {
    "text/markdown": "markdown",
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "text/plain": "plain",
}


class Reader(StrEnum):
    """Who reads a file: one of our own readers, or Tika. Archives are read file by file."""

    PLAIN = "plain"
    MARKDOWN = "markdown"
    CSV = "csv"
    TIKA = "tika"
    ARCHIVE = "archive"
    PICTURE = "picture"
    MAIL = "mail"


def choose_reader(path: Path, name: str, media_type: str) -> Reader:
    """Who reads this file.

    Raises: PermanentError `empty`, `unsupported-archive`, `encrypted` for 7-Zip archives,
    `decompression-bomb`.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.strip(b" \t\r\n\0"):
        raise refusal("empty")
    if (head.startswith(_IMAGES) or _WEBP.match(head)) and not _is_text(head):
        return Reader.PICTURE
    if head.startswith(_NOT_UNPACKED):
        locked = head.startswith(_7Z) and _7Z_AES in _tail(path)
        raise refusal("encrypted" if locked else "unsupported-archive")
    if head.startswith(COMPRESSED) or head[257:262] == b"ustar":
        return Reader.ARCHIVE
    if head.startswith(b"PK\x03\x04"):
        if _is_plain_zip(path):
            return Reader.ARCHIVE
        if is_bomb(path):
            raise refusal("decompression-bomb")
    if head.startswith(_BINARIES):
        return Reader.TIKA
    suffix = PurePath(name).suffix.lower()
    if _MAIL.match(head) and suffix not in _BY_SUFFIX:
        return Reader.MAIL
    known = _BY_SUFFIX.get(suffix) or (None if suffix else _BY_MEDIA_TYPE.get(media_type))
    return Reader(known) if known else Reader.TIKA


def is_cut_off(path: Path) -> bool:
    """Whether a ZIP-based document has lost its end, which holds the list of its parts."""
    return is_zip(path) and not zipfile.is_zipfile(path)


def is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def safe_suffix(name: str) -> str:
    """The ending of a file's name, for a name of our own; '' when it is no usual one."""
    suffix = PurePath(name).suffix.lower()
    return suffix if suffix[1:].isascii() and suffix[1:].isalnum() and len(suffix) <= 9 else ""


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        return file.read()


def _is_text(head: bytes) -> bool:
    return b"\0" not in head and all(byte >= 32 or byte in b"\t\r\n" for byte in head[:64])


def _is_plain_zip(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.lower() for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False  # cut off: Tika may still save what is there
    return not any(name.startswith(_DOCUMENT_MEMBERS) for name in names)
