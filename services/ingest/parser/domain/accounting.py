"""What an Office document holds, counted apart from its reader, and held against what came out."""

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lxml import etree

from libs.documents.model import Block, BlockKind

_READ_BYTES = 64 * 1024
_MAX_PART_BYTES = 100_000_000  # counting may cost no more than reading
_WORD = re.compile(r"word/document\.xml$")
_SLIDE = re.compile(r"ppt/slides/slide\d+\.xml$")
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml$")
_RULE = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|)*\s*:?-{2,}:?\s*\|?\s*")
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    etree.XMLSyntaxError,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,  # an encrypted part
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Counted:
    """What a file holds; None: that is not told apart in files of its kind."""

    tables: int | None = None
    rows: int | None = None


def counted_in(path: Path) -> Counted:
    """Tables with text of a Word file or presentation, rows with values of a workbook."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = [part for part in archive.infolist() if part.file_size <= _MAX_PART_BYTES]
            texts = [p for p in parts if _WORD.match(p.filename) or _SLIDE.match(p.filename)]
            sheets = [part for part in parts if _SHEET.match(part.filename)]
            tables = sum(_count(archive.open(part), _Tables()) for part in texts)
            rows = sum(_count(archive.open(part), _Rows()) for part in sheets)
            return Counted(tables if texts else None, rows if sheets else None)
    except _UNREADABLE:
        return Counted()  # the reader says what is wrong with it


def shortfalls(path: Path, text: str, blocks: Sequence[Block]) -> Iterator[str]:
    """A sentence for each kind of thing of which less came out than is in the file."""
    held = counted_in(path)
    tables = [block for block in blocks if block.kind is BlockKind.TABLE]
    if held.tables is not None and len(tables) < held.tables:
        yield f"{held.tables - len(tables)} of {held.tables} tables were not read"
    if lost := sum(not equation.is_in(text) for equation in equations_in(path)):
        yield f"{lost} equations were not read"
    rows = row_count(text, blocks)
    if held.rows is not None and rows < held.rows:
        yield f"{held.rows - rows} of {held.rows} rows were not read"


@dataclass(frozen=True, slots=True)
class Equation:
    """Its runs of text, which readers keep in this order."""

    runs: tuple[str, ...]

    def is_in(self, text: str) -> bool:
        """Whether it, or a run that is long enough to tell, came out; white space is nobody's."""
        bare = "".join(text.split())
        return "".join(self.runs) in bare or any(run in bare for run in self.runs if len(run) > 2)


def equations_in(path: Path) -> list[Equation]:
    """Those with text in a Word file, which some of Tika's readers leave out."""
    try:
        with zipfile.ZipFile(path) as archive:
            part = archive.getinfo("word/document.xml")
            if part.file_size > _MAX_PART_BYTES:
                return []
            found: list[Equation] = _parsed(archive.open(part), _Equations())
            return found
    except (*_UNREADABLE, KeyError):
        return []


def row_count(text: str, blocks: Sequence[Block]) -> int:
    """Rows of all tables of a document, without Markdown's lines below the header."""
    return sum(
        sum(_RULE.fullmatch(line) is None for line in text[block.start : block.end].split("\n"))
        for block in blocks
        if block.kind is BlockKind.TABLE
    )


class _Tables:
    """An lxml target that counts tables with text which are in no other table."""

    def __init__(self) -> None:
        self.count = 0
        self._depth = 0
        self._in_text = self._has_text = False

    def start(self, tag: str | bytes, _attrib: object) -> None:
        name = _local(tag)
        self._in_text = name == "t"
        if name == "tbl":
            self._has_text = self._has_text and self._depth > 0
            self._depth += 1

    def end(self, tag: str | bytes) -> None:
        self._in_text = False
        if _local(tag) == "tbl":
            self._depth -= 1
            self.count += self._depth == 0 and self._has_text

    def data(self, data: str | bytes) -> None:
        self._has_text = self._has_text or (self._in_text and bool(str(data).strip()))

    def close(self) -> int:
        return self.count


class _Rows:
    """An lxml target that counts rows with a value or text; a formula never computed has none."""

    def __init__(self) -> None:
        self.count = 0
        self._in_value = self._has_value = False

    def start(self, tag: str | bytes, _attrib: object) -> None:
        self._in_value = _local(tag) in {"v", "t"}
        if _local(tag) == "row":
            self._has_value = False

    def end(self, tag: str | bytes) -> None:
        self._in_value = False
        if _local(tag) == "row":
            self.count += self._has_value

    def data(self, data: str | bytes) -> None:
        self._has_value = self._has_value or (self._in_value and bool(str(data).strip()))

    def close(self) -> int:
        return self.count


class _Equations:
    """An lxml target that collects the text of Office's equations, each once."""

    def __init__(self) -> None:
        self._found: list[Equation] = []
        self._runs: list[str] = []
        self._in_equation = self._in_text = False

    def start(self, tag: str | bytes, _attrib: object) -> None:
        name = _local(tag)
        self._in_text = self._in_equation and name == "t"
        if self._in_text:
            self._runs.append("")
        if name == "oMath":
            self._in_equation, self._runs = True, []

    def end(self, tag: str | bytes) -> None:
        self._in_text = False
        if _local(tag) == "oMath":
            self._in_equation = False
            if runs := tuple(filter(None, self._runs)):
                self._found.append(Equation(runs))

    def data(self, data: str | bytes) -> None:
        if self._in_text:
            self._runs[-1] += "".join(str(data).split())

    def close(self) -> list[Equation]:
        return self._found


def _count(part: IO[bytes], target: Any) -> int:
    return int(_parsed(part, target))


def _parsed(part: IO[bytes], target: Any) -> Any:
    """By events, without a tree: memory stays that of one block."""
    parser = etree.XMLParser(target=target, resolve_entities=False, no_network=True)
    with part:
        while block := part.read(_READ_BYTES):
            parser.feed(block)
    return parser.close()


def _local(tag: str | bytes) -> str:
    return str(tag).rpartition("}")[2]
