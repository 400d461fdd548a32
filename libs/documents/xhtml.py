"""Tika's XHTML as blocks. Events only, no tree: memory is bounded by the text."""

import re
from collections.abc import Callable, Iterable, Sequence

from lxml import etree

from libs.documents.builder import BlockBuilder, TooLongError
from libs.documents.model import BlockKind
from libs.documents.print_codes import without_print_codes
from libs.documents.recognised import RecognisedLine, add_recognised, join_chinese
from libs.documents.tables import join_rows

MAX_DEPTH = 500
MAX_PAGES = 20_000
_HEADING = re.compile(r"h([1-6])$")
_BREAKING = {"p", "div", "ul", "ol", "dl", "dt", "dd", "body", "blockquote", "section", "article"}
_IGNORED = {"head", "script", "style"}

Attributes = dict[str | bytes, str | bytes]
PictureReader = Callable[[str], Sequence[RecognisedLine]]


class TooDeepError(ValueError):
    """Elements nested beyond MAX_DEPTH."""


class TooManyPagesError(ValueError):
    """Pages beyond MAX_PAGES."""


class XhtmlTarget:
    """An lxml parser target that fills a builder.

    Pages are `<div class="page">`. Names of embedded files count only when text follows them.
    `flowing`: line ends in the source mean nothing, as in HTML; only `<br>` ends a line.
    `sheets`: texts outside tables may be headers and footers with codes for the printer.
    `pictures` gives what stands on the picture with this address.
    """

    def __init__(
        self,
        builder: BlockBuilder,
        *,
        flowing: bool = False,
        sheets: bool = False,
        pictures: PictureReader | None = None,
    ) -> None:
        self._builder = builder
        self._flowing = flowing
        self._sheets = sheets
        self._pictures = pictures
        self._text: list[str] = []
        self._open: list[tuple[str, str]] = []  # (tag, class)
        self._rows: list[list[str]] | None = None
        self._table_depth = 0
        self._pending_name: str | None = None
        self._ignored = 0
        self._pending_chars = 0  # since the last block
        self._in_pre = 0
        self.slide_starts: list[int] = []  # index of the first block of each slide
        self.slides_end: int | None = None  # index of the first block after them
        self.table_count = 0
        self.image_count = 0

    def start(self, tag: str | bytes, attrib: Attributes) -> None:
        name = str(tag).rpartition("}")[2].lower()
        style = str(attrib.get("class", ""))
        self._open.append((name, style))
        if len(self._open) > MAX_DEPTH:
            raise TooDeepError
        if name in _IGNORED:
            self._ignored += 1
        elif name == "img":
            self._add_picture(str(attrib.get("src", "")))
        elif name == "table":
            self._begin_table()
        elif self._table_depth:
            self._start_in_table(name)
        elif name == "br":
            self._text.append("\n")
        elif name in _BREAKING or name in {"li", "pre"} or _HEADING.match(name):
            self._flush(self._kind_outside())
            self._in_pre += name == "pre"
            if name == "div":
                self._begin_part(style)

    def _add_picture(self, address: str) -> None:
        lines = self._pictures(address) if self._pictures else ()
        if not lines:
            self.image_count += 1
        elif self._table_depth:
            self._text.append(join_chinese(" ".join(line.text for line in lines)))
        else:
            self._flush(self._kind_outside())
            add_recognised(lines, self._builder)

    def _begin_part(self, style: str) -> None:
        if style == "page":
            if (self._builder.page_count or 0) >= MAX_PAGES:
                raise TooManyPagesError
            self._builder.page_break()
        elif style == "slide-content" and self.slides_end is None:
            self.slide_starts.append(len(self._builder.blocks))
        elif style in {"package-entry", "embedded"} and self.slides_end is None:
            self.slides_end = len(self._builder.blocks)

    def end(self, tag: str | bytes) -> None:  # noqa: ARG002 - the parser closes in order
        name, style = self._open.pop()
        if name in _IGNORED:
            self._ignored -= 1
        elif name == "table":
            self._end_table()
        elif self._table_depth:
            pass
        elif match := _HEADING.match(name):
            self._end_heading(int(match.group(1)))
        elif name == "pre":
            self._in_pre -= 1
            self._flush(BlockKind.CODE)
        elif name == "li" or (name == "p" and "list" in style.lower()):
            self._flush(BlockKind.LIST_ITEM)
        elif name in _BREAKING:
            self._flush(self._kind_outside())
            if style == "package-entry":
                self._pending_name = None

    def data(self, data: str | bytes) -> None:
        if not self._ignored:
            text = str(data)
            flowing = self._flowing and not self._in_pre
            self._pending_chars += len(text)
            if self._pending_chars > self._builder.max_chars:
                raise TooLongError
            self._text.append(text.replace("\n", " ") if flowing else text)

    def comment(self, text: str | bytes) -> None:
        """Comments are no text."""

    def close(self) -> None:
        self._flush(BlockKind.PARAGRAPH)

    def _kind_outside(self) -> BlockKind:
        inside_item = any(name == "li" for name, _ in self._open)
        return BlockKind.LIST_ITEM if inside_item else BlockKind.PARAGRAPH

    def _flush(self, kind: BlockKind, level: int | None = None) -> None:
        text = "".join(self._text)
        if self._sheets:
            text = without_print_codes(text)
        self._text.clear()
        self._pending_chars = 0
        if not text.strip():
            return
        if self._pending_name is not None:
            name, self._pending_name = self._pending_name, None
            self._builder.add(BlockKind.HEADING, name, level=1)
        verbatim = kind is BlockKind.CODE
        self._builder.add(kind, text, level=level, verbatim=verbatim)

    def _end_heading(self, level: int) -> None:
        if self._open and self._open[-1][1] == "package-entry":
            self._pending_name = "".join(self._text).strip() or None
            self._text.clear()
        else:
            self._text = [" ".join("".join(self._text).split())]
            self._flush(BlockKind.HEADING, level)

    def _begin_table(self) -> None:
        if self._table_depth == 0:
            self._flush(self._kind_outside())
            self._rows = []
        self._table_depth += 1

    def _start_in_table(self, name: str) -> None:
        if self._table_depth > 1:  # a table in a cell is part of the cell's text
            self._text.append(" ")
        elif name == "tr":
            self._end_cell()
            assert self._rows is not None  # noqa: S101 - set by _begin_table
            self._rows.append([])
        elif name in {"td", "th"}:
            self._end_cell()
            if self._rows:
                self._rows[-1].append("")
        else:
            self._text.append(" ")

    def _end_cell(self) -> None:
        if self._rows and self._rows[-1]:
            self._rows[-1][-1] = "".join(self._text)
        self._text.clear()

    def _end_table(self) -> None:
        self._table_depth -= 1
        if self._table_depth:
            return
        self._end_cell()
        rows, self._rows = join_rows(self._rows or []), None
        if rows:
            self.table_count += 1
            self._text = [rows]
            self._flush(BlockKind.TABLE)


def read_xhtml(
    pieces: Iterable[bytes],
    builder: BlockBuilder,
    *,
    flowing: bool = False,
    sheets: bool = False,
    pictures: PictureReader | None = None,
) -> XhtmlTarget:
    """Feed XHTML into the builder; returns the target with its counts.

    Raises: TooDeepError, `libs.documents.builder.TooLongError`.
    """
    target = XhtmlTarget(builder, flowing=flowing, sheets=sheets, pictures=pictures)
    parser = etree.XMLParser(
        target=target, recover=True, huge_tree=True, resolve_entities=False, no_network=True
    )
    fed = False
    for piece in pieces:
        parser.feed(piece)
        fed = True
    if fed:
        parser.close()
    return target
