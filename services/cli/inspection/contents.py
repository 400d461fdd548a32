"""The blocks of a document beside the chunks that they went into."""

from collections import Counter
from typing import Any, Final

from libs.documents.model import BlockKind
from services.cli.client import Json
from services.cli.inspection.alignment import Piece, Row, aligned
from services.cli.inspection.gathering import Parsed
from services.cli.inspection.markup import Html, Part, element
from services.cli.inspection.texts import excerpt, number, passage

_LEAD_CHARS: Final = 200
_HUE: Final = 137  # degrees between neighbours' colours: few are alike for long


def contents(parsed: Parsed, chunk_count: int | None) -> Html:
    """Args: chunk_count: Of the whole document, where it is known."""
    rows: list[Part] = []
    parents = {parent["id"]: parent for parent in parsed.parents}
    children = Counter(chunk["parent_id"] for chunk in parsed.chunks)
    current = None
    for row in aligned(parsed.blocks, parsed.chunks, parsed.text):
        parent_id = row.chunk["parent_id"] if row.chunk else None
        if row.chunk and parent_id != current:
            current = parent_id
            rows.append(_parent(parents.get(current), children[current]))
        hue = str(_HUE * parents[parent_id]["ordinal"] % 360) if parent_id in parents else ""
        rows.append(_row(row, parsed, hue))
    return element(
        "section",
        element("h2", "Blocks and chunks", attributes={"id": "contents"}),
        element("p", _extent(parsed, chunk_count), kind="note"),
        element(
            "div", element("h3", "What was read"), element("h3", "What is searched"), kind="row"
        ),
        *rows,
    )


def anchors(parsed: Parsed | None) -> dict[str, int]:
    """The numbers of the chunks that the report shows, by id."""
    return {chunk["id"]: chunk["ordinal"] for chunk in parsed.chunks} if parsed else {}


def anchor(ordinal: int) -> str:
    return f"chunk-{ordinal}"


def _extent(parsed: Parsed, chunk_count: int | None) -> str:
    total = parsed.outline["total"]
    shown = f"Blocks: {_of(len(parsed.blocks), total)}. "
    shown += f"Chunks: {_of(len(parsed.chunks), max(len(parsed.chunks), chunk_count or 0))}."
    left = total - len(parsed.blocks)
    return shown + (f" {number(left)} more blocks are not shown (--rows)." if left else "")


def _of(shown: int, total: int) -> str:
    return (
        f"all {number(total)}"
        if shown == total
        else f"the first {number(shown)} of {number(total)}"
    )


def _parent(parent: Json | None, children: int) -> Html:
    if parent is None:
        return element("div", "A parent that is not shown", kind="parent")
    hue = {"style": f"--hue: {_HUE * parent['ordinal'] % 360}"}
    path = " › ".join(parent["heading_path"])
    about = f" · {_place(parent)} · chunks: {children}"
    name = element("b", f"Parent {parent['ordinal'] + 1}")
    return element("div", name, about, _path(path), kind="parent", attributes=hue)


def _row(row: Row, parsed: Parsed, hue: str) -> Html:
    pieces = [_block(piece, parsed) for piece in row.pieces]
    left = element("div", *(pieces or [element("p", "no block", kind="warn")]))
    right = _chunk(row) if row.chunk else _uncut(row, parsed)
    style = {"style": f"--hue: {hue}"} if hue else {}
    return element("div", left, right, kind="row of-parent" if hue else "row", attributes=style)


def _block(piece: Piece, parsed: Parsed) -> Html:
    block = piece.block
    if block["kind"] == BlockKind.PAGE_BREAK:
        return element("div", "page break", kind="break")
    level = f" level {block['level']}" if block["level"] is not None else ""
    page = f" · page {block['page']}" if block["page"] is not None else ""
    again = " · goes on" if piece.is_continued else ""
    at = f" · {number(block['start'])}–{number(block['end'])}{again}"
    label = element("div", element("b", block["kind"] + level), page + at, kind="label")
    has_head = not piece.is_continued
    beyond = piece.end > len(parsed.text) and not parsed.text[piece.start : piece.end]
    text = (
        element("p", "its text is not shown", kind="more")
        if beyond
        else passage(
            parsed.text[piece.start : piece.end].strip("\n"), block["kind"], has_head=has_head
        )
    )
    return element("div", label, text, kind=f"block {BlockKind(block['kind']).value}")


def _chunk(row: Row) -> Html:
    chunk: Any = row.chunk
    name = element(
        "a", f"Chunk {chunk['ordinal'] + 1}", attributes={"href": f"#{anchor(chunk['ordinal'])}"}
    )
    label = element("div", element("b", name), f" · {_place(chunk)}", kind="label")
    lead = None
    if chunk["lead"]:
        begins = excerpt(chunk["lead"], _LEAD_CHARS)
        lead = element("p", "also indexed: ", element("q", begins), kind="lead")
    return element(
        "div",
        label,
        _path(" › ".join(chunk["heading_path"])),
        lead,
        *_chunk_texts(row, chunk),
        kind="chunk",
        attributes={"id": anchor(chunk["ordinal"])},
    )


def _chunk_texts(row: Row, chunk: Json) -> list[Part]:
    """The chunk's own text, each part as the block is that it was cut from."""
    text, begin = chunk["text"], chunk["start"]
    pieces = [piece for piece in row.pieces if piece.block["kind"] != BlockKind.PAGE_BREAK]
    return [
        passage(
            text[piece.start - begin : piece.end - begin].strip("\n"),
            piece.block["kind"],
            has_head=not piece.is_continued,
        )
        for piece in pieces
    ] or [passage(text, BlockKind.PARAGRAPH)]


def _uncut(row: Row, parsed: Parsed) -> Html:
    if all(piece.block["kind"] == BlockKind.PAGE_BREAK for piece in row.pieces):
        return element("div")
    if not parsed.chunks:
        return element("div", "not cut yet", kind="label")
    return element("div", "in no chunk", kind="warn")


def _place(chunk: Json) -> str:
    page = f" · page {chunk['page']}" if chunk["page"] is not None else ""
    size = number(chunk["end"] - chunk["start"])
    return f"{size} characters · {number(chunk['start'])}–{number(chunk['end'])}{page}"


def _path(path: str) -> Html | None:
    return element("div", excerpt(path, 300), kind="path") if path else None
