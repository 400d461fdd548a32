"""Headings and tables of a page from its layout, laid over the text that is already there.

The text stays the reader's own: a table is taken only where its characters are those of a run of
lines, so nothing is lost or doubled whatever the layout says.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from libs.documents.builder import BlockBuilder
from libs.documents.model import Block, BlockKind
from libs.documents.tables import join_rows

Box = tuple[float, float, float, float]  # left, bottom, right, top; y grows upwards

_SNAP = 3.0  # points: lines closer than this are one
_MIN_HEADING_RATIO = 1.12
_MAX_HEADING_CHARS = 100
_MAX_HEADING_SHARE = 0.2  # of the text: larger letters than that are no headings
_MAX_LEVELS = 4


@dataclass(frozen=True, slots=True)
class SizedLine:
    text: str
    height: float  # of the font's letters, in points
    length: int  # of the whole line, which `text` may have cut


@dataclass(frozen=True, slots=True)
class Ruling:
    """A line along one axis: `at` on the other axis, from `start` to `end`."""

    at: float
    start: float
    end: float
    horizontal: bool


@dataclass(frozen=True, slots=True)
class PageLayout:
    lines: list[SizedLine]
    tables: list[list[list[str]]]  # rows of cells


def heading_levels(pages: Sequence[PageLayout]) -> dict[float, int]:
    """The level of each letter height that only headings have; the largest is level 1."""
    chars: Counter[float] = Counter()
    short: dict[float, bool] = {}
    for page in pages:
        for line in page.lines:
            chars[line.height] += line.length
            short[line.height] = short.get(line.height, True) and line.length <= _MAX_HEADING_CHARS
    if not chars:
        return {}
    body = chars.most_common(1)[0][0]
    total = chars.total()
    larger = sorted(
        (
            height
            for height, count in chars.items()
            if height >= _MIN_HEADING_RATIO * body
            and short[height]
            and count <= _MAX_HEADING_SHARE * total
        ),
        reverse=True,
    )
    levels: dict[float, int] = {}
    for height in larger:
        near = [other for other in levels if other - height < 0.04 * other]
        levels[height] = levels[near[-1]] if near else len(set(levels.values())) + 1
    return {height: min(level, _MAX_LEVELS) for height, level in levels.items()}


def lay_over(
    text: str,
    blocks: Sequence[Block],
    page_count: int,
    pages: Mapping[int, PageLayout],
    max_chars: int,
) -> tuple[BlockBuilder, int]:
    """The same document with the headings and tables of its pages marked.

    Returns how many tables were left as lines, because the text gives them in pieces.
    """
    builder = BlockBuilder(max_chars)
    levels = heading_levels(list(pages.values()))
    missed = 0
    for number in range(1, page_count + 1):
        builder.page_break()
        own = [b for b in blocks if b.page == number and b.kind is not BlockKind.PAGE_BREAK]
        layout = pages.get(number, PageLayout([], []))
        missed += _add_page(text, own, layout, levels, builder)
    builder.page_ends()
    for block in blocks:
        if block.page is None and block.kind is not BlockKind.PAGE_BREAK:
            builder.add(block.kind, text[block.start : block.end], level=block.level)
    return builder, missed


def _add_page(
    text: str,
    blocks: Sequence[Block],
    layout: PageLayout,
    levels: dict[float, int],
    builder: BlockBuilder,
) -> int:
    lines = [
        (block, text[start:end]) for block in blocks for start, end in _line_spans(text, block)
    ]
    wanted = [rows for rows in layout.tables if _is_table(rows)]
    tables = _placed([line for _, line in lines], wanted)
    headings = {
        _bare(line.text): levels[line.height] for line in layout.lines if line.height in levels
    }

    def level_of(block: Block, line: str) -> int | None:
        return headings.get(_bare(line)) if block.kind is BlockKind.PARAGRAPH else None

    at = 0
    while at < len(lines):
        block, line = lines[at]
        if at in tables:
            at, table = tables[at]
            builder.add(BlockKind.TABLE, table)
            continue
        level = level_of(block, line)
        end = at + 1
        while (
            end < len(lines)
            and end not in tables
            and lines[end][0] is block
            and level_of(*lines[end]) == level
        ):
            end += 1
        run = [line for _, line in lines[at:end]]
        if level is None:
            builder.add(block.kind, "\n".join(run), level=block.level)
        else:  # a heading's lines belong together
            builder.add(BlockKind.HEADING, " ".join(run), level=level)
        at = end
    return len(wanted) - len(tables)


def _placed(
    lines: Sequence[str], tables: Sequence[Sequence[Sequence[str]]]
) -> dict[int, tuple[int, str]]:
    """Where each table stands: its first line, with the line after its last one and its text."""
    placed: dict[int, tuple[int, str]] = {}
    taken: set[int] = set()
    for rows in tables:
        span = _same_characters(lines, "".join(map("".join, rows)))
        if span is not None and taken.isdisjoint(range(*span)):
            placed[span[0]] = (span[1], join_rows(rows))
            taken.update(range(*span))
    return placed


def _line_spans(text: str, block: Block) -> Iterator[tuple[int, int]]:
    start = block.start
    while start < block.end:
        end = text.find("\n", start, block.end)
        end = block.end if end < 0 else end
        if text[start:end].strip():
            yield start, end
        start = end + 1


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a grid holds rows of cells, and is not the frame of a drawing."""
    full = [sum(bool(cell) for cell in row) for row in rows]
    return sum(count > 1 for count in full) > 1 and sum(full) >= 0.5 * sum(map(len, rows))


def _same_characters(lines: Sequence[str], wanted: str) -> tuple[int, int] | None:
    """The run of lines whose characters, in any order, are those of `wanted`."""
    target = Counter(_bare(wanted))
    size = target.total()
    sizes = [len(_bare(line)) for line in lines]
    first, held, difference = 0, 0, Counter(target)
    for at, line in enumerate(lines):
        difference.subtract(_bare(line))
        held += sizes[at]
        while held > size:
            difference.update(_bare(lines[first]))
            held -= sizes[first]
            first += 1
        if held == size and not any(difference.values()):
            return first, at + 1
    return None


def _bare(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


def grids(rulings: Sequence[Ruling]) -> Iterator[list[list[Box]]]:
    """The cells of each ruled table, row by row from the top; cells without a line between are one.

    A table has at least two rows and two columns.
    """
    for group in _connected(rulings):
        ys = _snapped(r.at for r in group if r.horizontal)
        xs = _snapped(r.at for r in group if not r.horizontal)
        if len(ys) < 3 or len(xs) < 3:
            continue
        verticals = [r for r in group if not r.horizontal]
        yield [
            list(_cells(xs, bottom, top, verticals)) for bottom, top in reversed(list(pairwise(ys)))
        ]


def _cells(
    xs: Sequence[float], bottom: float, top: float, verticals: Sequence[Ruling]
) -> Iterator[Box]:
    middle = (bottom + top) / 2
    left = xs[0]
    for right in xs[1:]:
        parted = any(
            abs(v.at - right) <= _SNAP and v.start - _SNAP <= middle <= v.end + _SNAP
            for v in verticals
        )
        if parted or right == xs[-1]:
            yield (left, bottom, right, top)
            left = right


def _connected(rulings: Sequence[Ruling]) -> list[list[Ruling]]:
    """Groups of lines that touch each other."""
    groups: list[list[Ruling]] = []
    for ruling in rulings:
        touched = [group for group in groups if any(_touch(ruling, other) for other in group)]
        merged = [ruling, *(other for group in touched for other in group)]
        groups = [group for group in groups if group not in touched]
        groups.append(merged)
    return groups


def _touch(one: Ruling, other: Ruling) -> bool:
    if one.horizontal == other.horizontal:
        return (
            abs(one.at - other.at) <= _SNAP
            and one.start <= other.end + _SNAP
            and other.start <= one.end + _SNAP
        )
    return (
        one.start - _SNAP <= other.at <= one.end + _SNAP
        and other.start - _SNAP <= one.at <= other.end + _SNAP
    )


def _snapped(values: Iterator[float]) -> list[float]:
    snapped: list[float] = []
    for value in sorted(values):
        if not snapped or value - snapped[-1] > _SNAP:
            snapped.append(value)
    return snapped
