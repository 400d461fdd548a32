"""Which blocks, or parts of them, lie beside which chunk."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from services.cli.client import Json


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a block that lies in a row; offsets into the document's text."""

    block: Json
    start: int
    end: int

    @property
    def is_continued(self) -> bool:
        """Whether the block began in an earlier row."""
        return self.start > int(self.block["start"])


@dataclass(frozen=True, slots=True)
class Row:
    """A chunk beside what it was cut from; without one: what lies in no chunk."""

    chunk: Json | None
    pieces: list[Piece] = field(default_factory=list)


def aligned(blocks: Sequence[Json], chunks: Sequence[Json], text: str) -> list[Row]:
    """Rows in reading order. A block that was cut is cut here too; white space is no piece.

    Args:
        blocks: In order, not overlapping.
        chunks: Children, in order.
        text: What the offsets count in; blocks beyond its end count as not blank.
    """
    rows = []
    at = 0  # the first block that may reach into the row
    for start, end, chunk in _regions(chunks, max((b["end"] for b in blocks), default=0) + 1):
        while at < len(blocks) and blocks[at]["end"] <= start and blocks[at]["start"] < start:
            at += 1
        row = Row(chunk)
        for block in blocks[at:]:
            if block["start"] >= end:
                break
            piece = Piece(block, max(start, block["start"]), min(end, block["end"]))
            if _counts(piece, text):
                row.pieces.append(piece)
        if chunk is not None or row.pieces:
            rows.append(row)
    return rows


def _regions(chunks: Sequence[Json], end: int) -> Iterator[tuple[int, int, Json | None]]:
    """The text from 0 to `end`, cut at the borders of chunks."""
    at = 0
    for chunk in chunks:
        if chunk["start"] > at:
            yield at, chunk["start"], None
        begin = max(at, chunk["start"])
        at = max(begin, chunk["end"])
        yield begin, at, chunk
    if at < end:
        yield at, end, None


def _counts(piece: Piece, text: str) -> bool:
    if piece.block["start"] == piece.block["end"]:
        return True  # a page break
    if piece.end > len(text):
        return piece.end > piece.start
    return bool(text[piece.start : piece.end].strip())
