"""Reads a document's structure: atoms with their heading paths, packed into spans."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from libs.chunking.recursive import can_cut, split_lines, split_span
from libs.chunking.spans import Atom, Span
from libs.documents.markdown import heading_title
from libs.documents.model import BlockKind, ParsedDocument
from libs.documents.spans import strip_span

MAX_TITLE_CHARS = 120
MAX_HEADER_CHARS = 200
_BY_LINES = {BlockKind.TABLE, BlockKind.CODE}
PROSE = frozenset({BlockKind.PARAGRAPH, BlockKind.LIST_ITEM})


def atoms_of(document: ParsedDocument) -> Iterator[Atom]:
    """Every block with text, in order, with the headings above it (its own included)."""
    path: list[tuple[int, str]] = []
    for block in document.blocks:
        if block.kind is BlockKind.PAGE_BREAK:
            continue
        if block.kind is BlockKind.HEADING:
            level = block.level or 1
            title = heading_title(document.text[block.start : block.end])[:MAX_TITLE_CHARS]
            path = [(above, name) for above, name in path if above < level]
            path.append((level, title))
        titles = tuple(name for _, name in path)
        yield Atom(block.kind, block.start, block.end, block.page, titles)


def at_cuts(text: str, atoms: Iterable[Atom], cuts: Sequence[int]) -> Iterator[Atom]:
    """The same atoms, those of prose parted at `cuts` (ascending offsets, wherever they came from).

    A piece that a cut lies before `begins`. A cut that would part a letter from its marks is void.
    """
    for atom in atoms:
        if not cuts or atom.kind not in PROSE:
            yield atom
            continue
        first, last = bisect_left(cuts, atom.start), bisect_right(cuts, atom.end - 1)
        inner = [cut for cut in cuts[first:last] if atom.start < cut and can_cut(text, cut)]
        begins = first < last and cuts[first] == atom.start
        for start, end in pairwise([atom.start, *inner, atom.end]):
            for begin, finish in strip_span(text, start, end):
                yield replace(atom, start=begin, end=finish, begins=begins)
                begins = True


def split_atom(text: str, atom: Atom, max_chars: int) -> list[Atom]:
    """The atom's pieces of at most `max_chars`: rows of tables and lines of code stay whole."""
    if atom.size <= max_chars:
        return [atom]
    if atom.kind not in _BY_LINES:
        spans = split_span(text, atom.start, atom.end, max_chars)
        return [atom.piece(start, end) for start, end in spans]
    spans = split_lines(text, atom.start, atom.end, max_chars)
    first, *rest = [atom.piece(start, end) for start, end in spans]
    header = _header_row(text, atom)
    return [first, *(piece.piece(piece.start, piece.end, header) for piece in rest)]


def pack(
    text: str, atoms: Iterable[Atom], *, max_chars: int, min_chars: int, whole_max_chars: int
) -> Iterator[Span]:
    """Join neighbours into spans of at most `max_chars`.

    A heading goes with what follows it, and begins a new span once the open one has `min_chars`
    or when it closes the section the open span began in. Tables and code stay whole up to
    `whole_max_chars`; then they are a span of their own, with the headings right above.
    """
    current: list[Atom] = []
    for atom in atoms:
        if current and _begins_section(current, atom, min_chars):
            yield Span(tuple(current))
            current = []
        if current and atom.end - current[0].start <= max_chars:
            current.append(atom)
            continue
        body, headings = _trailing_headings(current)
        limit = whole_max_chars if atom.kind in _BY_LINES else max_chars
        first_limit = limit - (atom.start - headings[0].start) if headings else limit
        cuts_whole = atom.kind in _BY_LINES and first_limit < atom.size <= limit
        if first_limit < limit // 2 or cuts_whole:  # headings that leave no room stay behind
            body, headings, first_limit = [*body, *headings], [], limit
        if body:
            yield Span(tuple(body))
        first, *rest = _split_first(text, atom, first_limit, limit)
        *done, current = [[*headings, first], *([piece] for piece in rest)]
        for piece in done:
            yield Span(tuple(piece))
    if current:
        yield Span(tuple(current))


def _split_first(text: str, atom: Atom, first_limit: int, limit: int) -> list[Atom]:
    if atom.size <= first_limit:
        return [atom]
    first, *rest = split_atom(text, atom, first_limit)
    if not rest:
        return [first]
    header = rest[0].header
    remainder = atom.piece(rest[0].start, atom.end, header)
    return [first, *split_atom(text, remainder, limit)]


def _begins_section(current: list[Atom], atom: Atom, min_chars: int) -> bool:
    if current[-1].kind is BlockKind.HEADING:
        return False
    if atom.begins:
        return current[-1].end - current[0].start >= min_chars
    if atom.kind is not BlockKind.HEADING:
        return False
    if current[-1].end - current[0].start >= min_chars:
        return True
    outer = len(current[0].heading_path)
    return len(atom.heading_path) < outer


def _trailing_headings(atoms: list[Atom]) -> tuple[list[Atom], list[Atom]]:
    at = len(atoms)
    while at and atoms[at - 1].kind is BlockKind.HEADING:
        at -= 1
    return atoms[:at], atoms[at:]


def _header_row(text: str, atom: Atom) -> str | None:
    if atom.kind is not BlockKind.TABLE:
        return None
    if atom.header:
        return atom.header
    line_end = text.find("\n", atom.start, atom.end)
    return text[atom.start : line_end][:MAX_HEADER_CHARS] if line_end > 0 else None
