"""A document's text in a report: bounded excerpts, tables as tables."""

import re
from typing import Any, Final

from libs.documents.model import BlockKind
from services.cli.inspection.markup import Html, element, joined

MAX_CHARS: Final = 3_000  # of one text
MAX_TABLE_ROWS: Final = 60
MAX_CELLS: Final = 30  # of a row
_MAX_CELL_CHARS: Final = 300
# Between cells, one of which may be empty; a bar within a cell's word is none.
_BORDER: Final = re.compile(r"(?:^|[^\S\n])\|(?=[^\S\n]|$)")
_RULE: Final = re.compile(r"[\s|:-]*-{3}[\s|:-]*")  # under the head of a Markdown table


def passage(text: str, kind: str, *, has_head: bool = False) -> Html:
    """A block's or a chunk's text, as what it is.

    Args:
        kind: Of block.
        has_head: Whether a table's first row is its head.
    """
    if kind == BlockKind.TABLE:
        return _grid(text, has_head=has_head)
    name = "pre" if kind == BlockKind.CODE else "p"
    return joined(element(name, text[:MAX_CHARS], kind="text"), _rest(text, MAX_CHARS))


def excerpt(text: str, length: int) -> str:
    flat = " ".join(text[: 4 * length].split())
    return flat if len(text) <= 4 * length and len(flat) <= length else flat[: length - 1] + "…"


def number(value: int) -> str:
    """`12 345`, with spaces that do not break."""
    return f"{value:,}".replace(",", "\N{NO-BREAK SPACE}")


def said(value: Any) -> str:
    """A value of JSON, for people."""
    match value:
        case None:
            return "—"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.3f}".rstrip("0").rstrip(".")
        case int():
            return number(value)
        case list():
            return ", ".join(map(said, value)) or "none"
        case dict():
            return ", ".join(f"{name} {said(each)}" for name, each in value.items()) or "none"
        case _:
            return str(value)


def _grid(text: str, *, has_head: bool) -> Html:
    lines = text.strip("\n").split("\n", MAX_TABLE_ROWS)
    shown, rest = lines[:MAX_TABLE_ROWS], lines[MAX_TABLE_ROWS:]
    rows = [_cells(line) for line in shown if not _RULE.fullmatch(line)]
    width = max((len(row) for row in rows), default=1)
    made = [_row(row, "th" if has_head and not at else "td", width) for at, row in enumerate(rows)]
    left = sum(1 + each.count("\n") for each in rest)
    more = element("p", f"… {number(left)} more rows", kind="more") if left else None
    return joined(element("div", element("table", *made, kind="grid"), kind="wide"), more)


def _cells(line: str) -> list[str]:
    if line.startswith("| ") and line.endswith(" |"):  # as Markdown frames its rows
        line = line[1:-1]
    cells = [excerpt(cell, _MAX_CELL_CHARS) for cell in _BORDER.split(line, MAX_CELLS)]
    return [*cells[:MAX_CELLS], "…"] if len(cells) > MAX_CELLS else cells


def _row(cells: list[str], name: str, width: int) -> Html:
    """A row as wide as the table; so is a single cell, such as a title or a note."""
    if len(cells) > 1:
        cells = cells + [""] * (width - len(cells))
    wide = {"colspan": str(width)} if len(cells) == 1 < width else {}
    return element("tr", *(element(name, cell, attributes=wide) for cell in cells))


def _rest(text: str, shown: int) -> Html | None:
    left = len(text) - shown
    return element("p", f"… {number(left)} more characters", kind="more") if left > 0 else None
