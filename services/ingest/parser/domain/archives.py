"""Archives as one document: a heading for each file inside, below it what the file says.

Members are unpacked one at a time under names of our own, so no name inside can point outside.
"""

import bz2
import gzip
import lzma
import re
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Self, cast

from libs.documents.builder import BlockBuilder, TooLongError
from libs.documents.encodings import decode_text
from libs.documents.model import BlockKind, ParsedDocument
from libs.kernel import PermanentError
from libs.storage.room import disk_error
from services.ingest.parser.domain.refusals import refusal
from services.ingest.parser.domain.sniffing import COMPRESSED, safe_suffix
from services.ingest.parser.domain.unpacking import MAX_RATIO, MAX_UNPACKED_BYTES

MAX_DEPTH = 4
MAX_MEMBERS = 1000
MAX_WARNINGS = 100
_UNSUSPICIOUS_BYTES = 10_000_000
_COPY_BYTES = 1_000_000
_UTF8_NAME = 0x800
_ENCRYPTED = 0x1
_UNSAFE = re.compile(r"^[/\\]|^[A-Za-z]:|(?:^|[/\\])\.\.(?:[/\\]|$)")
_NO_CONTENT = re.compile(r"(?:^|/)(?:__MACOSX/|\.DS_Store$)")
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError)
_MEDIA_TYPES = {
    b"PK": "application/zip",
    b"\x1f\x8b": "application/gzip",
    b"BZ": "application/x-bzip2",
    b"\xfd7": "application/x-xz",
}

# What the standard library raises where a field holds nonsense.
_INVALID = (ValueError, KeyError, IndexError, OverflowError, RuntimeError, struct.error)

MemberReader = Callable[[Path, str, "Budget"], ParsedDocument]


@dataclass(slots=True)
class Budget:
    """What one upload may unpack, with all archives inside archives."""

    bytes_left: int
    members_left: int = MAX_MEMBERS
    depth: int = 0  # archives around the current one

    @classmethod
    def for_file(cls, size_bytes: int) -> "Budget":
        """Bounded in bytes and by the ratio of what comes out to what went in."""
        return cls(min(MAX_UNPACKED_BYTES, max(_UNSUSPICIOUS_BYTES, MAX_RATIO * size_bytes)))


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside another one."""

    name: str
    problem: str | None = None  # why it is left out
    open: Callable[[], IO[bytes]] | None = None


def read_archive(
    path: Path, name: str, read: MemberReader, budget: Budget, max_chars: int
) -> ParsedDocument:
    """The files in a ZIP, TAR, gzip, bzip2 or xz archive, read by `read`.

    A file that cannot be read is named in the warnings. Raises: PermanentError `too-deep`,
    `too-many-files`, `decompression-bomb`, `too-large`, `corrupt`; when no file inside can be
    read, the commonest reason of theirs. DiskError: there is no room to unpack it.
    """
    contents = Contents(max_chars, _media_type(path))
    collect(contents, _members(path, name), path.parent, read, budget)
    return contents.document()


def collect(
    contents: "Contents",
    members: Iterator[Member],
    scratch: Path,
    read: MemberReader,
    budget: Budget,
) -> None:
    """Read the members one after the other, unpacked below `scratch`. Raises: see above."""
    if budget.depth >= MAX_DEPTH:
        raise refusal("too-deep")
    budget.depth += 1
    try:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            for member in members:
                budget.members_left -= 1
                if budget.members_left < 0:
                    raise refusal("too-many-files")
                contents.add(member, Path(folder), read, budget)
    except _DAMAGED as exc:
        if error := disk_error(exc, str(scratch)):
            raise error from exc
        if not contents.builder.blocks:
            raise refusal("corrupt") from exc
        contents.warnings.append("the archive is damaged or cut off: files may be missing")
    except TooLongError as exc:
        raise refusal("too-large") from exc
    finally:
        budget.depth -= 1


class Contents:
    """Collects what a file and the files inside it say.

    Args:
        level: Of the headings with the members' names.
    """

    def __init__(self, max_chars: int, media_type: str, *, level: int = 1) -> None:
        self._media_type = media_type
        self._level = level
        self._title: str | None = None
        self.builder = BlockBuilder(max_chars)
        self.warnings: list[str] = []
        self._reasons: Counter[str] = Counter()
        self._tables = 0

    def add(self, member: Member, folder: Path, read: MemberReader, budget: Budget) -> None:
        try:
            if member.open is None:
                raise refusal(member.problem or "unsupported")
            unpacked = folder / f"member{safe_suffix(member.name)}"
            with member.open() as source:
                _unpack(source, unpacked, budget)
            try:
                document = read(unpacked, member.name, budget)
            finally:
                unpacked.unlink()
        except PermanentError as exc:
            if exc.reason in {"decompression-bomb", "too-many-files"} and _spent(budget):
                raise
            self._reasons[exc.reason] += 1
            self.warnings.append(f"{member.name[:200]}: not read ({exc.reason})")
            return
        name = member.name[:200]
        self.builder.add(BlockKind.HEADING, name, level=self._level)
        self._copy(document, deeper=self._level)
        self.warnings += [f"{name}: {warning}" for warning in document.warnings]

    def add_own(self, document: ParsedDocument) -> None:
        """What the file itself says, before its members."""
        self._title = document.title
        self._copy(document, deeper=0)
        self.warnings += document.warnings

    def document(self) -> ParsedDocument:
        if not self.builder.blocks:
            raise refusal(max(self._reasons, key=lambda r: self._reasons[r], default="empty"))
        extra = len(self.warnings) - MAX_WARNINGS
        shown = self.warnings[:MAX_WARNINGS]
        return ParsedDocument(
            text=self.builder.text,
            blocks=self.builder.blocks,
            media_type=self._media_type,
            title=self._title,
            table_count=self._tables,
            warnings=[*shown, *([f"and {extra} more"] if extra > 0 else [])],
        )

    def _copy(self, document: ParsedDocument, *, deeper: int) -> None:
        for block in document.blocks:
            if block.kind is not BlockKind.PAGE_BREAK:
                level = None if block.level is None else block.level + deeper
                part = document.text[block.start : block.end]
                self.builder.add(block.kind, part, level=level, verbatim=True)
        self._tables += document.table_count


def _media_type(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(2)
    return _MEDIA_TYPES.get(head, "application/x-tar")


def _spent(budget: Budget) -> bool:
    return budget.bytes_left < 0 or budget.members_left < 0


def _unpack(source: IO[bytes], target: Path, budget: Budget) -> None:
    try:
        with target.open("wb") as file:
            while block := source.read(_COPY_BYTES):
                budget.bytes_left -= len(block)
                if budget.bytes_left < 0:
                    raise refusal("decompression-bomb")
                file.write(block)
    except (*_DAMAGED, *_INVALID) as exc:
        raise disk_error(exc, str(target)) or refusal("corrupt") from exc


def _members(path: Path, name: str) -> Iterator[Member]:
    with path.open("rb") as file:
        head = file.read(8)
    if head.startswith(b"PK"):
        yield from _zip_members(path)
        return
    if head.startswith(COMPRESSED) and not _holds_tar(path):
        yield Member(PurePath(name).stem, open=lambda: _decompressed(path))
        return
    yield from _tar_members(path)


def _decompressed(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        head = file.read(2)
    stream = bz2.open if head == b"BZ" else lzma.open if head == b"\xfd7" else gzip.open
    return cast(IO[bytes], stream(path))


def _holds_tar(path: Path) -> bool:
    with _decompressed(path) as stream:
        return stream.read(512)[257:262] == b"ustar"


def _zip_members(path: Path) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            name = _zip_name(info)
            if info.is_dir() or _NO_CONTENT.search(name):
                continue
            link = stat.S_ISLNK(info.external_attr >> 16)
            if link or _UNSAFE.search(name):
                yield Member(name, "unsafe-member")
            elif info.flag_bits & _ENCRYPTED:
                yield Member(name, "encrypted")
            else:
                yield Member(name, open=lambda info=info: _open_zipped(archive, info))  # type: ignore[misc]


def _open_zipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(info)
    except NotImplementedError as exc:  # a method of packing that Python does not know
        raise refusal("unsupported-archive") from exc
    except (*_DAMAGED, *_INVALID) as exc:
        raise refusal("corrupt") from exc


def _zip_name(info: zipfile.ZipInfo) -> str:
    """The name as its author wrote it: what is not marked as UTF-8 came in a local encoding."""
    if info.flag_bits & _UTF8_NAME:
        return info.filename
    try:
        return decode_text(info.filename.encode("cp437"))
    except (UnicodeEncodeError, PermanentError):
        return info.filename


class _Header(tarfile.TarInfo):
    """`tarfile` takes a damaged header for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            return super().frombuf(buf, encoding, errors)
        except (tarfile.EOFHeaderError, tarfile.EmptyHeaderError):  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as exc:
            raise tarfile.ReadError("damaged") from exc


def _tar_members(path: Path) -> Iterator[Member]:
    try:
        # As a stream: read once, forwards.
        with tarfile.open(path, "r|*", tarinfo=_Header, errors="replace") as archive:
            for info in archive:
                if info.isdir() or _NO_CONTENT.search(info.name):
                    continue
                if not info.isfile() or _UNSAFE.search(info.name):
                    yield Member(info.name, "unsafe-member")
                else:
                    yield Member(info.name, open=lambda info=info: _extracted(archive, info))  # type: ignore[misc]
    except _INVALID as exc:
        raise tarfile.ReadError("damaged") from exc


def _extracted(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(info)
    if file is None:
        raise refusal("corrupt")
    return file
